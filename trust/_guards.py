"""Guards of a child: what it runs, opens and connects to is recorded, and its memory is measured."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _forks

#: Audit events of what must never happen while data are read
FORBIDDEN = {
    "exec", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn",
    "subprocess.Popen", "pickle.find_class", "marshal.loads", "marshal.load", "socket.connect", "socket.getaddrinfo",
    "socket.gethostbyname", "socket.sendto", "socket.bind", "urllib.Request", "ftplib.connect", "smtplib.connect",
    "webbrowser.open", "code.__new__", "shelve.open",
}  # fmt: skip
NETWORK = {event for event in FORBIDDEN if event.split(".")[0] in ("socket", "urllib", "ftplib", "smtplib")}
# Python's own modules that build classes from text of the program, and packages that load compiled functions
BUILDERS = ("importlib", "/numba/", "/llvmlite/", "collections/__init__.py", "dataclasses.py", "/typing.py",
            "attr/_make", "/enum.py", "functools.py", "_decorator.py", "/decorator.py")  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def guard(folder: Path, meet: Callable[[str], None], *, forbidden: set[str] = FORBIDDEN) -> None:
    """Call `meet` with every forbidden event of this process, and with every file opened to write outside of a folder.

    For a child: hooks cannot be removed.
    """
    allowed = (str(folder), os.devnull, "/dev/shm", "/proc/self", "/dev/tty")

    def hook(event: str, given: Any) -> None:
        if event in forbidden:
            if not _built_by_python(sys._getframe().f_back):
                meet(f"{event} {str(given)[:200]}")
        elif event == "open" and given and isinstance(given[0], (str, bytes)):
            path, mode, flags = os.path.abspath(os.fsdecode(given[0])), given[1], given[2]
            writes = bool(mode and set(mode) & set("wax+")) or bool((flags or 0) & _WRITES)
            if writes and not path.startswith(allowed) and "__pycache__" not in path:
                meet(f"open to write {path}")

    sys.addaudithook(hook)


def _built_by_python(frame: Any) -> bool:
    """Tell whether an event comes from an import, or from a class that Python or numba builds."""
    while frame is not None and frame.f_code.co_filename != __file__:  # up to the work itself
        name = frame.f_code.co_filename
        if any(part in name for part in BUILDERS) or name.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def guarded(work: Callable[[], object], folder: Path, **options: Any) -> tuple[int, list[str]]:
    """Do work in a child under guard; return its exit status, and the events."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        handle = file.fileno()

        def child() -> None:
            guard(folder, lambda text: os.write(handle, text.encode(errors="replace") + b"\0"), **options)
            work()

        status = _forks.ended(_forks.fork(child))
        return status, [text.decode() for text in Path(file.name).read_bytes().split(b"\0")[:-1]]


def peak_growth(work: Callable[[], object]) -> tuple[int, float]:
    """Do work in a child; return its exit status, and by how many MB its memory grew at most."""
    with tempfile.NamedTemporaryFile() as file:

        def child() -> None:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
            before = _memory("VmRSS")
            try:
                work()
            finally:
                Path(file.name).write_text(str(_memory("VmHWM") - before))

        status = _forks.ended(_forks.fork(child))
        text = Path(file.name).read_text()
        return status, float(text or "inf")


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))
