"""How far long work is: a line on a terminal or in a notebook where it was asked for, and nothing otherwise."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listening: ContextVar[Callable[[str, float | None], None] | None] = ContextVar("listening", default=None)


def tell(step: int, gap: float | None, *, of: int | None = None, unit: str = "iteration") -> None:
    """Say from within a solver how far it is; costs nothing where nobody listens."""
    listener = _listening.get()
    if listener is not None:
        text = f"{unit} {step:,}" + (f" of {of:,}" if of else "")
        listener(text if gap is None else f"{text}, gap {gap:.2g}", step / of if of else None)


@contextmanager
def listening(shown: bool, name: str) -> Iterator[None]:
    """Show what solvers tell while the block runs, if `shown`, under this name."""
    if not shown:
        yield
        return
    with progress(True, name) as told:
        token = _listening.set(lambda text, share: told(f"{name}: {text}", share))
        try:
            yield
        finally:
            _listening.reset(token)


@contextmanager
def progress(shown: bool, waiting: str) -> Iterator[Callable[[str, float | None], None]]:
    """Give a function that takes a text and the share done (None: not known), and shows both if `shown`.

    Where standard error is no terminal and no notebook is there, nothing is written.
    """
    if not shown or not (_on_terminal() or _in_notebook()):
        yield lambda text, share: None
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

        def told(text: str, share: float | None) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < 0.05 and share != 1.0:
                return
            last = now
            if share is None:
                bar.update(task, description=_plain(text))
            else:
                bar.update(task, description=_plain(text), completed=share, total=1.0)

        yield told


def _plain(text: str) -> str:
    """Text as it is, whatever rich would make of its brackets."""
    from rich.markup import escape

    return escape(text)


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
