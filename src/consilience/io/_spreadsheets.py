"""CSV that spreadsheet programs show and do not run: text that begins like a formula gets an apostrophe."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

# the beginning of a cell that spreadsheet programs may run, after blanks; the last four are wide forms
_FORMULA = re.compile("[\t\r\n]|\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")
_SEPARATORS = ',;\t"\n\r'  # semicolons and tabs separate cells where commas are decimal marks


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
    formula = not isinstance(value, (int, float)) and _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return "'" + text if formula else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in _SEPARATORS) else text
