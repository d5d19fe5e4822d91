"""Tables and figures of the page as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class PagePart:
    """A part of the page: its title as text, what stands first, and blocks by heading; both HTML."""

    title: str
    lead: str
    blocks: dict[str, str]


def html_part(part: PagePart, number: int) -> str:
    """Return a part of the page; its headings have ids for the contents."""
    body = "".join(
        f'<h3 id="{anchor(number, k)}">{heading}</h3>{text}' for k, (heading, text) in enumerate(part.blocks.items())
    )
    return f'<section class="part" id="{anchor(number)}"><h2>{escape(part.title)}</h2>{part.lead}{body}</section>'


def html_contents(parts: Sequence[PagePart]) -> str:
    """Return links to the parts of the page and their headings."""
    items = []
    for number, part in enumerate(parts):
        inner = "".join(
            f'<li><a href="#{anchor(number, k)}">{heading}</a></li>' for k, heading in enumerate(part.blocks)
        )
        below = f"<ul>{inner}</ul>" if inner else ""
        items.append(f'<li><a href="#{anchor(number)}">{escape(part.title)}</a>{below}</li>')
    return f'<nav aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def anchor(number: int, block: int | None = None) -> str:
    """Return the id of a part, or of one of its headings."""
    return f"part{number}" if block is None else f"part{number}-{block}"


class Markup(str):
    """A cell whose text is HTML already."""


class Mark(tuple[str, str]):
    """A cell with a CSS class and a text."""

    def __new__(cls, kind: str, text: str) -> "Mark":
        return super().__new__(cls, (kind, text))


def html_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    numeric: Sequence[int] = (),
    first: str = "",
    foot: Sequence[Any] = (),
) -> str:
    """Return a table that the reader can sort by its headings; a cell is a text, (value, text), `Markup` or `Mark`.

    `numeric` lists the columns that are aligned to the right, `first` is the CSS class of the first row, and `foot` is
    a last row that sorting leaves in its place.
    """
    align = [' class="number"' if k in numeric else "" for k in range(len(heads))]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(heads, align, strict=True))
    body = []
    for number, row in enumerate(rows):
        kind = f' class="{first}"' if first and number == 0 else ""
        body.append(f"<tr{kind}>{''.join(map(_cell, row, align))}</tr>")
    below = f"<tfoot><tr>{''.join(map(_cell, foot, align))}</tr></tfoot>" if foot else ""
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody>{below}</table></div>"
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


def folded(summary: str, content: str) -> str:
    """Return content that the reader unfolds by a click on its summary."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def described(facts: Sequence[tuple[str, str]]) -> str:
    """Return names and values, both HTML, as a list."""
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts) + "</dl>"


def plural(n: int, noun: str, several: str = "") -> str:
    """Return a number and its noun, such as "1 view" and "2 views"; `several` is an irregular plural."""
    return f"{n:,} {noun if n == 1 else several or noun + 's'}"
