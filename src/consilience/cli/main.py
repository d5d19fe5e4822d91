"""The command line: demo, compare, fit, predict, evaluate, stream, inspect, reproduce, estimators and kernels.

Exit codes: 0 done, 1 the data or the model cannot be used (one sentence says why), 2 the command was not understood,
130 stopped by Ctrl-C, 143 stopped by SIGTERM, 141 done, but the reader of standard output had closed the pipe. Heavy
packages are imported only when a command runs.
"""

import io
import os
import signal
import sys
import warnings
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

import typer

from . import _compare, _models, _reproduce, _streams  # noqa: F401  commands register themselves
from . import _options as option
from ._app import Stopped, app, remember_words
from ._estimators import all_estimators, task_of_class
from ._output import flush_output, open_missing_streams, say, show

__all__ = ["app", "main"]

_STOPPED, _TERMINATED, _UNREAD = 130, 143, 141  # exit codes, those of shells for SIGINT, SIGTERM and SIGPIPE


@app.command()
def estimators(json_out: option.JsonFlag = False) -> None:
    """List the estimators, with their task and paper.

    \b
    Examples:
      consilience estimators
      consilience estimators --json
    """
    rows = [
        {"name": name, "task": task_of_class(name), "description": (cls.__doc__ or "").strip().splitlines()[0]}
        for name, cls in all_estimators().items()
    ]
    show({"estimators": rows}, json_out, ["name", "task", "description"], rows)


@app.command()
def kernels(json_out: option.JsonFlag = False) -> None:
    """List the kernels, with the names that --set takes, as in ``--set kernel=rbf``.

    \b
    Examples:
      consilience kernels
    """
    from .. import kernels as module
    from ..kernels import Kernel

    values = {name: getattr(module, name) for name in module.__all__}
    rows = [
        {"name": name, "short name": cls._name or "", "description": (cls.__doc__ or "").strip().splitlines()[0]}
        for name, cls in values.items()
        if isinstance(cls, type) and issubclass(cls, Kernel) and cls is not Kernel
    ]
    show({"kernels": rows}, json_out, ["name", "short name", "description"], rows)


def main() -> None:
    """Run the command line; an error is one sentence unless --debug is given."""
    terminated: list[bool] = []
    try:
        with _terminated_like_ctrl_c(terminated), _stopped_in_finalizers():
            code = _run_words()
        _flush_quietly()
    except KeyboardInterrupt:  # before the command or after it
        say("Stopped.", err=True)
        code = _STOPPED
        _flush_quietly()
    sys.exit(_TERMINATED if code == _STOPPED and terminated else code)


def _flush_quietly() -> None:
    with suppress(OSError):  # the error was told; otherwise Python would try again, and show a traceback
        flush_output()


def _run_words() -> int:
    """Prepare the streams and the warnings, and run the command that the words of the shell name."""
    open_missing_streams()
    words = [word for word in sys.argv[1:] if word != "--debug"]  # typer would accept it before the command only
    remember_words(words)
    if len(words) < len(sys.argv) - 1:
        os.environ["CONSILIENCE_DEBUG"] = "1"
    debug = bool(os.environ.get("CONSILIENCE_DEBUG"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may lack characters that files have
            stream.reconfigure(errors="backslashreplace")
    if not debug:
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers out of range get a sentence of their own
        warnings.showwarning = lambda message, *rest: say(f"Warning: {message}", err=True)
    return _run(words, debug)


def _run(words: list[str], debug: bool) -> int:
    """Run a command; return its exit code."""
    try:
        code = _exit_code(words)
        if code == _STOPPED:
            say("Stopped.", err=True)
        return _UNREAD if flush_output() and not code else code
    except (Stopped, typer.Abort, KeyboardInterrupt) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # which typer considers the end of a dialog
            say(f"Error: A file ends too early: {stopped.__cause__}", err=True)
            return 1
        say(str(stopped) or "Stopped.", err=True)
        return _STOPPED
    except Exception as error:
        if _is_interrupted(error):
            say("Stopped.", err=True)
            return _STOPPED
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # the command was not understood
            told = io.StringIO()
            error.show(file=told)
            with suppress(OSError):
                say(told.getvalue().rstrip("\n"), err=True)
            return int(error.exit_code)
        if debug:
            raise
        say(f"Error: {_sentence(error)}", err=True)
        return 1


def _is_interrupted(error: BaseException | None) -> bool:
    """Return whether an error came of Ctrl-C, such as that of an archive which is closed before its file is."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _exit_code(words: list[str]) -> int:
    """Run a command by typer, which would otherwise print errors its own way and exit."""
    try:
        return app(words, standalone_mode=False) or 0
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # help that nobody reads
            return _UNREAD
        raise


@contextmanager
def _terminated_like_ctrl_c(came: list[bool]) -> Iterator[None]:
    """Let SIGTERM stop the work as Ctrl-C does, so that streams write their checkpoint; `came` gets True then."""

    def stop(*given: Any) -> None:
        came[:] = [True]
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _stopped_in_finalizers() -> Iterator[None]:
    """Let Ctrl-C stop the work that comes while an object is deleted, where Python would print it and go on."""
    before = sys.unraisablehook

    def again(ignored: Any) -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            Timer(0.01, interrupt_main).start()  # when this hook has ended, where an exception would be printed too
        else:
            before(ignored)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before


def _sentence(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"There is no file '{error.filename}'."
    if isinstance(error, OSError) and error.strerror:  # of the system
        return f"'{error.filename}': {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error) or type(error).__name__


if __name__ == "__main__":
    main()
