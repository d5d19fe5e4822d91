"""One process at a time: a lock that is free again when its process has ended, however it ended."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .writing import lock


@contextmanager
def hold_lock(file: Path, refusal: Callable[[int], str]) -> Iterator[None]:
    """Hold a lock file, and remove it at the end; the lock of a process that has ended is free.

    `refusal` returns the sentence of the error for the number of the process that holds the lock.
    """
    while True:
        with file.open("a+b") as held:
            free = lock(held.fileno(), wait=False)
            held.seek(0)
            holder = _number(held.read())
            if free is False or (free is None and _runs(holder)):  # None: there are no locks here
                raise OSError(refusal(holder))
            if not (file.exists() and os.path.samestat(file.stat(), os.fstat(held.fileno()))):
                continue  # its holder has ended meanwhile, and removed it
            held.truncate(0)
            held.write(str(os.getpid()).encode())
            held.flush()
            try:
                yield
            finally:
                if free is None:  # Windows removes closed files only
                    held.close()
                file.unlink(missing_ok=True)
            return


def _number(text: bytes) -> int:
    return int(text) if re.fullmatch(rb"[0-9]{1,9}", text) else 0


def _runs(process: int) -> bool:
    if not process or sys.platform == "win32":  # a signal would end it there
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process != os.getpid()
