"""Tables and figures of the page as HTML."""

from collections.abc import Sequence
from html import escape
from typing import Any


class Markup(str):
    """A cell whose text is HTML already."""


class Mark(tuple[str, str]):
    """A cell with a CSS class and a text."""

    def __new__(cls, kind: str, text: str) -> "Mark":
        return super().__new__(cls, (kind, text))


def html_table(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], *, numeric: Sequence[int] = (), first: str = ""
) -> str:
    """Return a table that the reader can sort by its headings; a cell is a text, (value, text), `Markup` or `Mark`.

    `numeric` lists the columns that are aligned to the right, `first` is the CSS class of the first row.
    """
    align = [' class="number"' if k in numeric else "" for k in range(len(heads))]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(heads, align, strict=True))
    body = []
    for number, row in enumerate(rows):
        kind = f' class="{first}"' if first and number == 0 else ""
        body.append(f"<tr{kind}>{''.join(map(_cell, row, align))}</tr>")
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(cell: Any, align: str) -> str:
    if isinstance(cell, Markup):
        return f"<td>{cell}</td>"
    if isinstance(cell, Mark):
        kind, text = cell[0], escape(cell[1])
        if kind in ("present", "missing"):
            return f'<td data-value="{text}"><span class="{kind}" role="img" aria-label="{text}"></span></td>'
        return f'<td class="{kind}">{text}</td>' if kind else "<td></td>"
    if isinstance(cell, tuple):
        # the script sorts by the value, not by its text
        return f'<td{align} data-value="{cell[0]}">{escape(cell[1])}</td>'
    return f"<td{align}>{escape(cell)}</td>"


def html_figure(caption: str, chart: str) -> str:
    """Return a chart with its caption, which is HTML already."""
    return f"<figure><figcaption>{caption}</figcaption>{chart}</figure>"


def html_figures(figures: Sequence[str]) -> str:
    """Return figures side by side where the page is wide enough."""
    return f'<div class="figures">{"".join(figures)}</div>'


def plural(n: int, noun: str) -> str:
    """Return a number and its noun, such as "1 view" and "2 views"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
