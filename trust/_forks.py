"""Work in a child that is forked from this process, so that nothing is imported or compiled again, and its end."""

import os
import signal
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable

Work = Callable[[], object]


def fork(work: Work) -> int:
    """Start work in a child; return its process number. The child ends with status 0, or 1 after an error."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the parent, of which none works now
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(child: int) -> int:
    """Wait for a child; return its exit status, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def seconds_of(work: Work, repeats: int = 3) -> float:
    """Return the time of the work in a child, from the fork to its end: the median of some runs."""
    times = []
    for _ in range(repeats):
        start = time.monotonic()
        if ended(fork(work)):
            raise RuntimeError("The work failed without being disturbed.")
        times.append(time.monotonic() - start)
    return statistics.median(times)


def run_and_kill(work: Work, seconds: float) -> int:
    """Kill a child after some seconds; return its exit status: -9, or 0 if it had ended before."""
    child = fork(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # nothing happens to a child that has ended and was not waited for
    return ended(child)


#: What changes files, by the names of Python's audit events
CHANGES = {"open", "os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link"}


def count_calls(work: Work, path: str) -> None:
    """Do the work in this process, and write the number of its calls that change files to a path."""
    count = 0

    def hook(event: str, given: object) -> None:
        nonlocal count
        count += event in CHANGES

    sys.addaudithook(hook)  # it cannot be removed, so this is for a child
    work()
    calls = count
    with open(path, "w") as file:
        file.write(str(calls))


def kill_at_call(work: Work, number: int) -> None:
    """Do the work in this process, and kill it just before a call that changes a file."""
    left = number

    def hook(event: str, given: object) -> None:
        nonlocal left
        if event not in CHANGES:  # the kill is an event too
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    work()
