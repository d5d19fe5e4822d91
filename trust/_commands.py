"""Commands in a child that is forked from this process, with a fault in the system around them."""

import contextlib
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _forks
from consilience.cli import main as entry

Fault = Callable[[], object]
LONGEST = 120  # seconds of a command
BEFORE: list[Fault] = []  # called in every child
_ROOM = 1 << 20  # bytes of a pipe, so that nobody needs to read it before the child ends


class Ended(NamedTuple):
    """How a command ended: exit status, negative for a signal, and what it printed."""

    code: int
    output: str
    errors: str


def run(words: list[str], folder: Path, fault: Fault | None = None, **streams: Any) -> Ended:
    """Run a command in a child that works in a folder; a fault is called in the child first.

    `streams` are `out` and `err`: None for a pipe that is read at the end, or a function that returns the number of an
    open file for the child.
    """
    child, ends = start(words, folder, fault, **streams)
    code = _forks.ended(child)
    return Ended(code, *(_content(end) for end in ends))


def start(words: list[str], folder: Path, fault: Fault | None = None, *, out: Any = None, err: Any = None) -> Any:
    """Start a command in a child; return its process number, and the ends of the pipes of its output and errors."""
    pairs = [_pipe() if given is None else (None, given()) for given in (out, err)]

    def work() -> None:
        _as_program([writing for _, writing in pairs], folder)
        os._exit(_status(words, fault))

    child = _forks.fork(work)
    for _, writing in pairs:
        if writing is not None:
            os.close(writing)
    return child, [reading for reading, _ in pairs]


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import fcntl

        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _ROOM)
    return reading, writing


def _content(end: int | None) -> str:
    if end is None:
        return ""
    with os.fdopen(end, "rb") as file:
        return file.read().decode(errors="replace")


def _as_program(handles: list[int | None], folder: Path) -> None:
    """Give this child the streams of a program of its own; a handle of None is a stream that is closed."""
    signal.alarm(LONGEST)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for number, (name, handle) in enumerate(zip(("stdout", "stderr"), handles, strict=True), 1):
        if handle is None:
            os.close(number)
        else:
            os.dup2(handle, number)
            os.close(handle)
        setattr(sys, name, None if handle is None else _text(number, name))
    warnings.resetwarnings()


def _text(number: int, name: str) -> io.TextIOWrapper:
    """Return the stream that Python would open."""
    file = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(file, encoding="utf-8", errors="strict", line_buffering=name == "stderr")


def _status(words: list[str], fault: Fault | None) -> int:
    """Run a command as Python would: return the exit status, also that of output which cannot be written at the end."""
    sys.argv, status = ["consilience", *words], 0
    try:
        for call in (*BEFORE, *filter(None, [fault])):
            call()
        entry.main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        _complain(traceback.format_exc())
        status = 70
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except Exception as error:
        _complain(f"Exception ignored: {error!r}\n")
        status = 120
    return status


def _complain(text: str) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.write(text)
        sys.stderr.flush()


# -- faults, which are called in the child
#: Calls of the system that a fault may meet, by the names of Python's audit events
CALLS = {*_forks.CHANGES, "os.scandir", "os.listdir", "os.utime"}


def calls_in(folder: Path, meet: Callable[[str, str], None]) -> None:
    """Call `meet` before every call of the system on a file in a folder, with the event and the path."""
    place = str(folder)

    def hook(event: str, given: Any) -> None:
        if event in CALLS and given and isinstance(given[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(given[0]))
            if path.startswith(place):
                meet(event, path)

    sys.addaudithook(hook)  # it cannot be removed, so this is for a child


def counting(folder: Path, file: Path) -> Fault:
    """Return a fault that does nothing but count: a byte in a file, elsewhere, for each call."""

    def fault() -> None:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        calls_in(folder, lambda event, path: os.write(handle, b"."))

    return fault


def failing(folder: Path, number: int, code: int) -> Fault:
    """Return a fault: a call of the system fails, and no other."""

    def fault() -> None:
        left = number

        def meet(event: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(code, os.strerror(code), path)

        calls_in(folder, meet)

    return fault


def failing_writes(number: int, code: int) -> Fault:
    """Return a fault: from a call of os.write or os.fsync on, half of the bytes are written, then all of them fail."""

    def fault() -> None:
        left, write = number, os.write

        def failing_write(handle: int, content: Any) -> int:
            nonlocal left
            left -= 1
            if left > 0:
                return write(handle, content)
            if left == 0 and len(content) > 1:
                return write(handle, bytes(content)[: len(content) // 2])
            raise OSError(code, os.strerror(code))

        def failing_sync(handle: int, sync: Any = os.fsync) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise OSError(code, os.strerror(code))
            sync(handle)

        os.write, os.fsync = failing_write, failing_sync

    return fault


def limited(size: int) -> Fault:
    """Return a fault: no file gets larger than a size."""

    def fault() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    return fault
