"""Progress of long-running work, if asked for: a bar in a terminal or a notebook, elsewhere a line per minute."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

Show = Callable[[str, float | None], None]  # takes a text and the share of the work that is done, None if unknown

_shown_by: ContextVar[Show | None] = ContextVar("shown_by", default=None)


def report_progress(step: int, gap: float | None, *, of: int | None = None, unit: str = "iteration") -> None:
    """Report from within a solver how far it is; costs nothing unless `show_progress` is active."""
    show = _shown_by.get()
    if show is not None:
        text = f"{unit} {step:,}" + (f" of {of:,}" if of else "")
        show(text if gap is None else f"{text}, gap {gap:.2g}", step / of if of else None)


@contextmanager
def show_progress(shown: bool, name: str) -> Iterator[None]:
    """Show under this name what solvers report while the block runs, if `shown`."""
    if not shown:
        yield
        return
    with progress(True, name) as show:
        token = _shown_by.set(lambda text, share: show(f"{name}: {text}", share))
        try:
            yield
        finally:
            _shown_by.reset(token)


@contextmanager
def progress(shown: bool, waiting: str) -> Iterator[Show]:
    """Yield a function that shows a text and the share of the work that is done, if `shown`.

    If standard error is not a terminal and there is no notebook, it prints a line per minute there, for log files.
    """
    if not shown:
        yield lambda text, share: None
        return
    if not (_on_terminal() or _in_notebook()):
        yield _line_per_minute()
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        warnings.warn("Progress is shown by rich: pip install 'consilience[cli]'.", stacklevel=3)
        yield lambda text, share: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=not _in_notebook()), transient=True) as bar:
        task = bar.add_task(_plain(waiting), total=None)
        last = 0.0

        def show(text: str, share: float | None) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < 0.05 and share != 1.0:
                return
            last = now
            if share is None:
                bar.update(task, description=_plain(text))
            else:
                bar.update(task, description=_plain(text), completed=share, total=1.0)

        yield show


def _line_per_minute() -> Show:
    """Return a function that prints to standard error, once a minute at most and not in the first minute."""
    start = last = time.monotonic()

    def show(text: str, share: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if sys.stderr is None or now - last < 60:
            return
        last = now
        done = "" if share is None else f", {share:.0%} done"
        with suppress(OSError):  # a pipe that nobody reads must not stop the work
            print(f"{text}{done}, {(now - start) / 60:.0f} min", file=sys.stderr, flush=True)

    return show


def _plain(text: str) -> str:
    """Return text whose brackets rich does not read as markup."""
    from rich.markup import escape

    return escape(text)


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
