"""Outputs are written whole or not at all, to what they name."""

import errno
import os
import re
import stat
import threading
import time

import numpy as np
import pytest

import consilience as cs
from consilience.io import writing
from consilience.io.writing import check_output, write_atomically

posix = pytest.mark.skipif(os.name == "nt", reason="devices, pipes and permissions are those of POSIX")


def put(path, content=b"new"):
    write_atomically(path, lambda file: file.write(content))


def partial(path, seconds_ago=0):
    """A file such as a killed process leaves."""
    left = path.with_name(f".{path.name}.{'0' * 16}.partial")
    left.write_bytes(b"half")
    os.utime(left, (time.time() - seconds_ago,) * 2)
    return left


@posix
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    put(pipe)
    reader.join(30)
    assert got == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@posix
def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        pytest.skip("only root can make devices")
    (tmp_path / "link").symlink_to(device)
    for path in (device, tmp_path / "link"):
        try:
            put(path)
        except PermissionError:
            pytest.skip("devices are not allowed on this file system")
    cs.save(cs.Views(a=np.ones((2, 1))), device)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert (tmp_path / "link").is_symlink()


@posix
@pytest.mark.parametrize("there", [True, False], ids=["existing", "dangling"])
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path, there):
    (tmp_path / "away").mkdir()
    target, near, far = tmp_path / "away" / "file", tmp_path / "near", tmp_path / "far"
    if there:
        target.write_bytes(b"old")
    near.symlink_to("away/file")
    far.symlink_to("near")
    put(far)
    assert near.is_symlink()
    assert far.is_symlink()
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path / "away") == ["file"]


@posix
def test_permissions_of_a_file_are_kept_and_new_files_have_the_usual_ones(tmp_path):
    path = tmp_path / "file"
    for mode in (0o600, 0o640, 0o604):
        path.write_bytes(b"old")
        path.chmod(mode)
        put(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
    before = os.umask(0o027)
    try:
        put(tmp_path / "other")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o640


@posix
def test_owner_and_group_are_kept_and_no_other_group_gets_more(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12346)
        put(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)

    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    before = os.stat(path)
    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result([0] * 10))
    changed = []
    monkeypatch.setattr(os, "fchmod", lambda _, mode: changed.append(mode))
    other = os.stat_result((before.st_mode, *before[1:4], 77, 78, *before[6:]))
    writing._keep_permissions(0, other)
    assert changed == [0o644]  # what the old group could write, the new one cannot


def test_leftovers_of_killed_writes_are_removed_and_nothing_else(tmp_path):
    path = tmp_path / "model.cons"
    left, other = partial(path, 100_000), partial(tmp_path / "model.con", 100_000)
    mine = tmp_path / ".model.cons.notes.partial"
    mine.write_bytes(b"")
    put(path)
    assert not left.exists()
    assert other.exists()
    assert mine.exists()
    assert path.read_bytes() == b"new"


@posix
def test_what_another_process_writes_now_is_no_leftover(tmp_path):
    path = tmp_path / "file"
    living = partial(path, 100_000)
    with open(living, "r+b") as file:
        assert writing.lock(file.fileno(), wait=False)
        put(path)
        assert living.exists()
    put(path)
    assert not living.exists()


def test_without_locks_only_old_leftovers_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "fcntl", None)
    path = tmp_path / "file"
    young = partial(path, 3600)
    put(path)
    assert young.exists()
    old = partial(path, 100_000)
    put(path, b"newer")
    assert not old.exists()
    assert path.read_bytes() == b"newer"


def test_many_writers_of_one_file_never_tear_it(tmp_path):
    path, odd = tmp_path / "file", []
    put(path, b"0")

    def work(k):
        for size in range(1, 60):
            try:
                put(path, str(k).encode() * size * 500)
                if len(set(path.read_bytes())) != 1:
                    odd.append("torn")
            except OSError as error:
                odd.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert odd == []
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("where", ["write", "fsync"])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, error, where, monkeypatch):
    path = tmp_path / "model.cons"
    cs.save(cs.Views(a=np.ones((2, 1))), path)
    before = path.read_bytes()

    def fail(*given):
        if where == "write":
            given[0].write(b"half")
        raise error

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)) as raised:
        write_atomically(path, fail) if where == "write" else cs.save(cs.Views(a=np.zeros((2, 1))), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.cons"]
    if isinstance(error, OSError):
        assert str(raised.value) == f"'{path}' cannot be written: No space left."


@posix
@pytest.mark.parametrize("flags", [0, os.O_APPEND])
def test_an_append_that_fails_leaves_nothing_and_the_next_one_goes_on_from_there(flags, tmp_path, monkeypatch):
    write = os.write

    def full(handle, content):
        if len(content) < 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, content[:3])

    handle = os.open(tmp_path / "lines", os.O_WRONLY | os.O_CREAT | flags)
    writing.append_whole(handle, b"one\n")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        writing.append_whole(handle, b"second\n")
    monkeypatch.setattr(os, "write", write)
    assert (tmp_path / "lines").read_bytes() == b"one\n"
    writing.append_whole(handle, b"three\n")
    os.close(handle)
    assert (tmp_path / "lines").read_bytes() == b"one\nthree\n"


def test_names_as_long_as_they_may_be(tmp_path):
    path = tmp_path / ("n" * 250)
    put(path)
    left = partial(tmp_path / ("n" * 50), 100_000)
    put(path, b"newer")
    assert not left.exists()
    assert path.read_bytes() == b"newer"


@posix
def test_places_that_cannot_be_written_get_a_sentence(tmp_path, monkeypatch):
    path, loop = tmp_path / "file", tmp_path / "loop"
    path.write_bytes(b"old")
    loop.symlink_to("loop")
    (tmp_path / "astray").symlink_to("no/file")
    sentences = {
        tmp_path: f"'{tmp_path}' is a folder. Name a file to write.",
        tmp_path / "no" / "file": f"The folder '{tmp_path / 'no'}' does not exist. Create it first.",
        tmp_path / "astray": f"The folder '{tmp_path / 'no'}' does not exist. Create it first.",
        path / "file": f"'{path / 'file'}' cannot be written: Not a directory.",
        loop: f"'{loop}' cannot be written: Too many levels of symbolic links.",
    }
    for place, sentence in sentences.items():
        for call in (put, check_output):
            with pytest.raises(OSError, match=re.escape(sentence)):
                call(place)
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) == str(path))
    with pytest.raises(PermissionError, match=r"can only be replaced as a whole, .* is read-only for you"):
        put(path)
    with pytest.raises(PermissionError, match=r"^The folder .* is read-only for you. Name a file in another folder"):
        put(tmp_path / "new")
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) != str(path))
    with pytest.raises(PermissionError, match=r"is write-protected. Give it write permission"):
        put(path)
    assert path.read_bytes() == b"old"


def test_what_the_system_refuses_gets_a_sentence(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    path = tmp_path / "file"
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OSError, match="cannot be written: Read-only file system") as raised:
        put(path)
    assert str(raised.value).startswith(f"'{path}' ")
