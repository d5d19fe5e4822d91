"""Writing files: completely or not at all."""

import io
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_A_DAY = 86_400.0  # seconds; no write takes as long
_WRITE = os.O_WRONLY | getattr(os, "O_BINARY", 0)
_SEPARATORS = ',;\t"\n\r'  # semicolons and tabs separate cells where commas are decimal marks


def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV; text with separators, quotes or line ends is in quotes."""
    return "".join(",".join(_quoted(str(value)) for value in row) + "\n" for row in rows)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in _SEPARATORS) else text


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], *, sync_folder: bool = True) -> None:
    """Write a file completely or not at all: first under another name in the same folder, then by a rename.

    A reader sees the old file or the complete new one, never a part. A link stays a link, and the file that it names is
    replaced. An existing file keeps its permissions, and its owner and group if that is allowed; its other names (hard
    links) keep the old content. A device or a pipe is written to; a pipe without a reader makes the writer wait.
    Without `sync_folder` it takes half the time, and the old file may be there again after a power cut.
    """
    with naming_output(path):
        check_output(path)
        status = _status(path)
        if is_standard_output(path) or (status is not None and not stat.S_ISREG(status.st_mode)):
            _write_into(path, write)
        else:
            target = Path(os.path.realpath(path))
            _replace(target, write)
            if sync_folder:
                _sync_folder(target.parent)


@contextmanager
def naming_output(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system into sentences that name the file which cannot be written."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # the error has its own sentence
            raise
        raise type(error)(f"'{path}' cannot be written: {error.strerror}.") from error


def append_whole(handle: int, content: bytes) -> None:
    """Append to an open file all of the content or, after an error such as a full disk, nothing."""
    before = os.fstat(handle)
    left = memoryview(content)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError:
        if stat.S_ISREG(before.st_mode):
            with suppress(OSError):
                os.ftruncate(handle, before.st_size)
                os.lseek(handle, 0, os.SEEK_END)
        raise


def check_output(path: Path) -> None:
    """Validate that `write_atomically` can write to a path: a file, or a new name in a folder that allows it."""
    try:
        status = _status(path)
    except OSError as error:  # links in a circle, a file where a folder should be
        raise type(error)(f"'{path}' cannot be written: {error.strerror}.") from error
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"'{path}' is a folder. Name a file to write.")
    if status is not None and not os.access(path, os.W_OK):
        raise PermissionError(f"'{path}' is write-protected. Give it write permission, or name another file.")
    folder = Path(os.path.realpath(path)).parent
    if status is None and not folder.is_dir():
        raise FileNotFoundError(f"The folder '{folder}' does not exist. Create it first.")
    if (status is None or stat.S_ISREG(status.st_mode)) and not os.access(folder, os.W_OK | os.X_OK):
        why = "" if status is None else f"'{path}' can only be replaced as a whole, and "
        sentence = f"{why}the folder '{folder}' is read-only for you. Name a file in another folder."
        raise PermissionError(sentence[0].upper() + sentence[1:])


def is_standard_output(path: Path) -> bool:
    """Return whether a path is ``/dev/stdout``, by whatever name, so that output goes where this process prints."""
    if not os.path.abspath(path).startswith(("/dev/", "/proc/")):
        return False
    try:
        return os.path.samestat(os.stat(path), os.fstat(1))
    except OSError:
        return False


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the file behind all links; None if there is no file."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _write_into(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a device or pipe, once the content is complete."""
    content = io.BytesIO()  # a reader of a pipe must not get a part, if `write` fails
    write(content)
    if is_standard_output(path):  # after what was printed before, also where it goes to a file
        sys.stdout.flush()
        handle = os.dup(1)
    else:
        handle = os.open(path, _WRITE | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(handle, "wb") as file:
        file.write(content.getbuffer())


def _replace(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    _remove_leftovers(target)
    before = _status(target)
    partial, handle = _begin(target, private=before is not None)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            if before is not None:
                _keep_permissions(handle, before)
            os.fsync(handle)
            if fcntl is not None:  # still locked, so that no other process removes it as a leftover
                os.replace(partial, target)
        if fcntl is None:  # Windows renames closed files only
            os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _begin(target: Path, *, private: bool) -> tuple[Path, int]:
    """Open a new file in the folder of the target, locked for as long as it is open."""
    while True:
        partial = target.with_name(f".{_short(target.name)}.{secrets.token_hex(8)}.partial")
        handle = os.open(partial, _WRITE | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        lock(handle, wait=True)
        if os.path.lexists(partial):
            return partial, handle
        os.close(handle)  # another process removed it as a leftover before the lock was held


def _short(name: str) -> str:
    """Return the name, cut if it leaves no room for what partial files add to it."""
    return name if len(os.fsencode(name)) <= 220 else name[:50]


def lock(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file; return False if another process holds the lock, None if there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove partial files of the same target from killed processes: those without a lock, or older than a day."""
    pattern = re.compile(rf"\.{re.escape(_short(target.name))}\.[0-9a-f]{{16}}\.partial")
    with suppress(OSError), os.scandir(target.parent) as entries:
        leftovers = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
        for path in leftovers:
            with suppress(OSError):
                _remove_leftover(path)


def _remove_leftover(path: str) -> None:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return
    old = time.time() - status.st_mtime > _A_DAY
    if fcntl is None:
        if old:
            os.unlink(path)
        return
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        free = lock(handle, wait=False)
        if free or (free is None and old):
            os.unlink(path)
    finally:
        os.close(handle)


def _keep_permissions(handle: int, before: os.stat_result) -> None:
    """Give the new file the owner, the group and the permissions of the old one."""
    if not hasattr(os, "fchown"):
        return
    mode, now = before.st_mode & 0o777, os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except OSError:
            try:
                os.fchown(handle, -1, before.st_gid)
            except OSError:  # another group gets no more than everybody
                mode &= 0o707 | (mode & 0o007) << 3
    os.fchmod(handle, mode)


def _sync_folder(folder: Path) -> None:
    """Write the rename to disk, if the system can."""
    if os.name == "nt":
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
