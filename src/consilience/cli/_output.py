"""What commands print: tables, lines, JSON, and CSV that spreadsheet programs do not run."""

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

BOARD = ["estimator", "score", "low", "high", "fit_time"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # the beginning of a cell that spreadsheet programs may run
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")


def board_rows(board: Any) -> dict[str, Any]:
    """Return a leaderboard as rows of a table."""
    rows = [dict(zip(BOARD, (r.name, r.score, r.low, r.high, r.fit_time), strict=True)) for r in board]
    return {"task": board.task, "scoring": board.scoring, "leaderboard": rows}


def show(summary: dict[str, Any], as_json: bool, columns: list[str] | None = None, rows: Any = None) -> None:
    """Print as JSON, as a table, or line by line."""
    if as_json:
        print(json.dumps(_plain(summary), default=str, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console() if sys.stdout.isatty() else Console(width=10_000)  # lines of a file are not folded
    if rows is not None and columns is not None:
        table = Table(box=None, header_style="bold")
        for column in columns:
            numbers = all(isinstance(row[column], (int, float)) for row in rows)
            table.add_column(column, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row[column], 2 if column == "fit_time" else 4) for column in columns))
        console.print(table)
        return
    for name, value in summary.items():
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        if isinstance(value, dict):
            text = ", ".join(f"{k}={v!r}" for k, v in value.items())
        line = f"{name:<18} {text:.4g}" if isinstance(text, float) else f"{name:<18} {text}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _plain(value: Any) -> Any:
    """Return what JSON can hold: null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any, digits: int) -> Any:
    from rich.text import Text

    return Text(f"{value:.{digits}f}" if isinstance(value, float) else str(value))


def csv_lines(rows: Iterable[Sequence[Any]]) -> tuple[str, int]:
    """Return rows as CSV, and how many cells were changed so that spreadsheet programs do not run them as formulas."""
    changed, lines = 0, []
    for row in rows:
        safe = [_harmless(value) for value in row]
        changed += sum(text != str(value) for text, value in zip(safe, row, strict=True))
        lines.append(",".join(map(_quoted, safe)) + "\n")
    return "".join(lines), changed


def _harmless(value: Any) -> str:
    """Return a cell as text, with an apostrophe before text that begins like a formula, but not before numbers."""
    text = str(value)
    formula = isinstance(value, str) and text.startswith(_FORMULA) and not _NUMBER.fullmatch(text)
    return "'" + text if formula else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text
