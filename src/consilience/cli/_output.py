"""What commands print: tables, lines and JSON, without characters that change how a terminal shows them."""

import json
import math
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

# all but tabs and ends of lines: escape sequences, marks that turn the direction of text, halves of characters
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")


def printable(text: str) -> str:
    """Return text with its control characters spelled out: names in a file cannot color, move or hide lines.

    Examples
    --------
    >>> print(printable("\x1b[2Jview"))
    \\x1b[2Jview
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str, *, err: bool = False) -> None:
    """Print text to standard output, or to standard error."""
    _write(printable(text) + "\n", err=err)


class OutputError(OSError):
    """Standard output cannot be written."""


_unread: list[bool] = []  # whether the reader of standard output has closed the pipe


def _write(text: str, *, err: bool = False) -> None:
    """Write text; messages that nobody can get do not stop the work, nor does a reader that has seen enough."""
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(text)
        if err:
            stream.flush()
    except OSError as error:
        _drop(stream, error, err)


def flush_output() -> bool:
    """Write what was printed so far; return whether the reader of standard output had closed the pipe before."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop(sys.stdout, error, err=False)
    unread = bool(_unread)
    _unread.clear()
    return unread


def _drop(stream: Any, error: OSError, err: bool) -> None:
    """Let a stream that cannot be written go nowhere; raise if what was printed is lost though somebody wants it."""
    with suppress(OSError, ValueError, AttributeError):  # otherwise Python tries again when the process ends
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
    if err:
        return
    if not isinstance(error, BrokenPipeError):
        raise OutputError(f"The output cannot be written: {error.strerror}.") from error
    _unread[:] = [True]


def open_missing_streams() -> None:
    """Open standard streams that were closed when the process began: nothing is read, and output goes nowhere.

    Otherwise the next file that is opened gets the number of standard output, and with it what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        handle = os.open(os.devnull, os.O_RDWR)  # the lowest free number
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)
        stream = os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
        setattr(sys, name, stream)


class Use(NamedTuple):
    """How to use a model file: as text, and as parts for JSON."""

    text: str
    parts: dict[str, Any]


def how_to_use(model_file: Path, data: Sequence[Path], model: Any, reading: dict[str, Any], batch: Any = None) -> Use:
    """Return two lines of Python, and a command, that predict with a model file.

    `reading` are the options by which `read_samples` read the training samples. With batches, which are a view from a
    column of their own, there is only a command.
    """
    import shlex

    given = "".join(
        f", {name}={value!r}" for name, value in reading.items() if value or (value == 0 and value is not False)
    )
    python = [
        f"model = consilience.load({str(model_file)!r})",
        f"model.predict(consilience.read_samples({[str(path) for path in data]!r}{given}).X)",
    ]
    words = ["consilience", "predict", str(model_file), *map(str, data)]
    for name, value in (("--id", reading.get("ids")), ("--views", reading.get("views"))):
        words += [] if value is None else [name, str(value)]
    words += ["--transpose"] if reading.get("transpose") else []
    words += ["--encoding", str(reading["encoding"])] if reading.get("encoding") else []
    words += [word for mark in reading.get("na_values", ()) for word in ("--na", mark)]
    words += [] if reading.get("libsvm_base") is None else ["--libsvm-base", str(reading["libsvm_base"])]
    words += ["--proba"] if hasattr(model, "predict_proba") else []
    command = shlex.join(words)
    parts: dict[str, Any] = {"command": command} if batch else {"python": python, "command": command}
    lines = [] if batch else ["Predict with it in Python:", *(f"  {line}" for line in python)]
    first = "Predict with it by a command:" if batch else "or by a command:"
    return Use("\n".join(["", *lines, first, f"  {command}"]), parts)


def board_rows(board: Any) -> dict[str, Any]:
    """Return a leaderboard as rows of a table."""
    verdicts = ["best", *(found.verdict for found in board.differences())]
    rows = [
        {
            "estimator": row.name, "title": row.title, "kind": row.kind, "score": row.score, "low": row.low,
            "high": row.high, "verdict": verdict, "fit_time": row.fit_time, "samples": int(row.scored.sum()),
            "measures": {name: list(scores) for name, scores in row.measures.items()},
        }
        for row, verdict in zip(board, verdicts, strict=True)
    ]  # fmt: skip
    failed = {"failed": dict(board.failed)} if board.failed else {}
    best = {"simplest": board.simplest().name}
    return {"task": board.task, "scoring": board.scoring, "leaderboard": rows, **best, **failed}


def show_external(result: Any, summary: dict[str, Any], as_json: bool) -> None:
    """Print the measures of an external cohort with their intervals; for JSON, the values by name and the intervals."""
    if not as_json:
        say(str(result))
        show(summary, False)
        return
    values = {name: own.value for name, own in result.measures.items()}
    intervals = {name: [own.low, own.high] for name, own in result.measures.items()}
    classes = [
        {
            "class": str(own.label), "samples": own.n_samples, "predicted": own.n_predicted,
            "sensitivity": own.sensitivity._asdict(), "ppv": own.ppv._asdict(),
        }
        for own in result.by_class
    ]  # fmt: skip
    more = {"training samples": result.n_training, "notes": list(result.notes)}
    show({**values, "intervals": intervals, **({"classes": classes} if classes else {}), **more, **summary}, True)


def show(summary: dict[str, Any], as_json: bool, columns: list[str] | None = None, rows: Any = None) -> None:
    """Print as JSON, as a table, or line by line."""
    if as_json:
        say(json.dumps(_plain(summary), default=str, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=10_000)  # lines of a file are not folded
    if rows is not None and columns is not None:
        table = Table(box=None, header_style="bold")
        for column in columns:
            numbers = all(isinstance(row[column], (int, float)) for row in rows)
            table.add_column(
                Text(printable(column)), justify="right" if numbers else "left", no_wrap=numbers, overflow="fold"
            )
        for row in rows:
            table.add_row(*(_cell(row[column], 2 if column == "fit_time" else 4) for column in columns))
        _write(_rendered(console, table))
        return
    for name, value in summary.items():
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        if isinstance(value, dict):
            text = ", ".join(f"{k}={v!r}" for k, v in value.items())
        line = f"{name:<18} {text:.4g}" if isinstance(text, float) else f"{name:<18} {text}"
        _write(_rendered(console, printable(line), markup=False, highlight=False, soft_wrap=True))


def _rendered(console: Any, content: Any, **options: Any) -> str:
    """Return what rich would print; it would end the process where nobody reads it."""
    with console.capture() as captured:
        console.print(content, **options)
    return str(captured.get())


def _plain(value: Any) -> Any:
    """Return what JSON can hold: null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any, digits: int) -> Any:
    from rich.text import Text

    return Text(f"{value:.{digits}f}" if isinstance(value, float) else printable(str(value)))
