"""The leaderboard of a report."""

from collections.abc import Sequence
from html import escape

import numpy as np

from ..evaluation.leaderboard import Comparison
from . import _charts as charts
from ._findings import Findings
from ._html import Markup, folded, html_table
from ._scores import interval_text, is_share, score_name, score_text

SHOWN_ROWS = 8  # of the leaderboard; the others are folded


def board_section(findings: Findings) -> str:
    """Return the leaderboard as HTML."""
    board = findings.board
    verdicts = {found.second: found.verdict for found in board.differences()}
    table = [_table(findings, rows, verdicts, first) for rows, first in _parts(board.rows)]
    more = folded(f"{len(board) - SHOWN_ROWS} more rows", table[1]) if len(table) > 1 else ""
    how = folded("How the scores are computed", f"<p>{_how(findings)}</p>")
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in findings.board.notes)
    return f"<p>{_text(findings)}</p>{table[0]}{more}{notes}{how}"


def _parts(rows: Sequence[Comparison]) -> list[tuple[Sequence[Comparison], bool]]:
    """Return the rows that are shown, and those that are folded; a single row more is shown."""
    if len(rows) <= SHOWN_ROWS + 1:
        return [(rows, True)]
    return [(rows[:SHOWN_ROWS], True), (rows[SHOWN_ROWS:], False)]


def _table(findings: Findings, rows: Sequence[Comparison], verdicts: dict[str, str], first: bool) -> str:
    board = findings.board
    low, high = _score_range(findings, rows)
    others = board.scorings[1:]
    body = []
    for row in rows:
        name = "" if row.title == row.name else f'<br><span class="soft">{escape(row.name)}</span>'
        middle = min(max(row.score, low), high) if np.isfinite(row.score) else low
        body.append(
            [
                Markup(f"{escape(row.title)}{name}"), row.kind,
                (row.score, interval_text(row.score, row.low, row.high, board.scoring)),
                Markup(charts.mini_interval(middle, row.low, row.high, low, high, findings.best.score)),
                *((mean, score_text(mean, other)) for other in others for mean in [_mean(row.measures[other])]),
                verdicts.get(row.name, ""),
                (row.fit_time, f"{row.fit_time:.2f}"),
            ]
        )  # fmt: skip
    heads = [_head(board.scoring), "", *map(_head, others)]
    n = len(others)
    foot = ["", "", "", Markup(charts.mini_axis(low, high, percent=is_share(board.scoring))), *[""] * (n + 2)]
    return html_table(
        ["estimator", "kind", *heads, "against the best", "fit time (s)"], body, numeric=(2, *range(4, 4 + n), 5 + n),
        first="chosen" if first else "", foot=foot,
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _head(scoring: str) -> str:
    name = scoring.replace("_", " ") if scoring != "r2" else "R²"
    return f"{name} (%)" if is_share(scoring) else name


def _text(findings: Findings) -> str:
    board = findings.board
    text = (
        f"{_capital(score_name(board.scoring))} on held-out samples of {len(board.splits)} folds, with 95% "
        "intervals. The vertical line is the best score."
    )
    if board.failed:
        failures = "; ".join(f"{name}: {reason}" for name, reason in board.failed.items())
        text += f" Could not be fitted: {escape(failures)}"
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _how(findings: Findings) -> str:
    board = findings.board
    n_inner = getattr(board.inner_cv, "n_splits", None)
    inner = f"{n_inner} inner folds" if n_inner else "inner folds"
    text = (
        f"Nested cross-validation. Parameters are chosen within the training part of each fold, by {inner} or by the "
        "estimator itself, so that the test samples of a fold take no part in these choices. The best row is chosen by "
        "its score, so its score is slightly optimistic. A row is “different” from the best one if the paired test of "
        "their held-out predictions, corrected for the number of comparisons, has a p-value of at most 0.05. Fit times "
        "are means over the folds and include the choice of parameters."
    )
    if board.prepare is not None:
        text += " The preparation of the views is fitted within the training part of each fold, too."
    if board.groups is not None:
        text += " All samples of a group are in the same part of a fold."
    return text


def _score_range(findings: Findings, rows: Sequence[Comparison]) -> tuple[float, float]:
    """Return the range of scores that the charts of some rows show; the best score is in it."""
    scoring = findings.board.scoring
    values = [v for row in rows for v in (row.low, row.score, row.high) if np.isfinite(v)]
    values += [findings.best.score] if np.isfinite(findings.best.score) else []
    least, most = (min(values), max(values)) if values else (0.0, 1.0)
    if is_share(scoring):
        return max(least, 0.0), 1.0
    return (max(least, -1.0), 1.0) if scoring == "r2" else (least, most)
