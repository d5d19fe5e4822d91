"""The top of a report: whether several views help, the simplest estimator, the gap to a baseline, data problems."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..evaluation.leaderboard import Comparison
from ..views._blocks import some
from ._findings import Findings
from ._html import plural
from ._scores import difference_text, interval_text, is_share, score_name


@dataclass(frozen=True)
class Answer:
    """A question, a short answer and what it rests on; all HTML."""

    question: str
    short: str
    text: str


def answers_of(findings: Findings) -> list[Answer]:
    """Return the answers at the top of a report."""
    found = [_best(findings), _views_help(findings), _simplest(findings), _baseline(findings), _problems(findings)]
    return [answer for answer in found if answer is not None]


def answers_html(answers: list[Answer]) -> str:
    """Return answers as a list of boxes."""
    boxes = [
        f'<div class="answer"><h3>{answer.question}</h3><p class="short">{answer.short}</p>{answer.text}</div>'
        for answer in answers
    ]
    return f'<div class="answers">{"".join(boxes)}</div>'


def titled(row: Comparison) -> str:
    """Return the plain name of a row as HTML."""
    return f"<strong>{escape(row.title)}</strong>"


def scored(findings: Findings, row: Comparison) -> str:
    """Return the score of a row with its interval."""
    scoring = findings.board.scoring
    return interval_text(row.score, row.low, row.high, scoring, "%" if is_share(scoring) else "")


def _best(findings: Findings) -> Answer:
    best, board = findings.best, findings.board
    n_single = sum(row.kind == "single view" for row in board)
    others = f", {plural(n_single, 'single view')}" if n_single else ""
    n_baselines = sum(row.kind == "baseline" for row in board)
    others += f", {plural(n_baselines, 'baseline')}" if n_baselines else ""
    n_models = len(board) - n_single - n_baselines
    text = f"Best {score_name(board.scoring)} of {plural(n_models, 'estimator')}{others}, on held-out samples."
    return Answer(
        "Best score", scored(findings, best), f"<p>{titled(best)}. {text}</p><p>{escape(_task(findings))}</p>"
    )


def _task(findings: Findings) -> str:
    """Return the task: which classes, or how many values the target has."""
    values = np.unique(findings.y)
    if findings.board.task == "regression":
        return f"Task: regression, {plural(len(values), 'value')} from {values[0]:.4g} to {values[-1]:.4g}."
    return f"Task: classification, {plural(len(values), 'class', 'classes')}: {some(list(map(str, values)), 5)}."


def _views_help(findings: Findings) -> Answer | None:
    board = findings.board
    question = "Do several views help?"
    if len(findings.X.names) < 2:
        return None
    found = board.gain_of_views()
    if found is None:
        lacking = "single view" if any(row.kind in ("estimator", "own") for row in board) else "estimator of all views"
        return Answer(question, "Not compared", f"<p>The comparison has no {lacking}.</p>")
    several, single = (next(row for row in board if row.name == name) for name in (found.first, found.second))
    short = _verdict(found, "Yes", "No, they cost score", "Not shown")
    text = (
        f"{difference_text(found, board.scoring)}: the best estimator of all views less the best single view, both "
        f"chosen in the other folds, most often {titled(several)} and {titled(single)}."
    )
    return Answer(question, short, f"<p>{text}</p>")


def _verdict(found: Any, better: str, worse: str, unclear: str) -> str:
    if found.verdict == "different":
        return better if found.value > 0 else worse
    return unclear if found.verdict == "not told apart" else "Too few samples to tell"


def _simplest(findings: Findings) -> Answer:
    board, best = findings.board, findings.best
    row = board.simplest()
    question = "Simplest within noise"
    if row is best:
        return Answer(question, escape(row.title), "<p>No simpler row is as good as the best one.</p>")
    found = board.difference(best.name, row.name, board.n_pairs)
    text = f"{scored(findings, row)}. The best is not told apart from it: {difference_text(found, board.scoring)}."
    return Answer(question, escape(row.title), f"<p>{text}</p>")


def _baseline(findings: Findings) -> Answer | None:
    board = findings.board
    baselines = [row for row in board if row.kind == "baseline"]
    model = next((row for row in board if row.kind != "baseline"), None)
    if not baselines or model is None:
        return None
    found = board.difference(model.name, baselines[0].name, board.n_pairs)
    short = _verdict(found, "Better than the baselines", "Worse than a baseline", "Not told apart from a baseline")
    text = (
        f"{difference_text(found, board.scoring)}: {titled(model)} less the best baseline, {titled(baselines[0])}, "
        f"which has {scored(findings, baselines[0])}."
    )
    if len(baselines) > 1:
        text += f" The lowest, {titled(baselines[-1])}, has {scored(findings, baselines[-1])}."
    return Answer("Gap to the baseline", short, f"<p>{text}</p>")


def _problems(findings: Findings) -> Answer:
    looked_for = (
        "Looked for rare classes, constant or repeated views, repeated and almost equal samples, ids, leaks, and "
        "missing values that depend on the target."
    )
    return problems_answer(findings.problems, looked_for)


def problems_answer(problems: list[str], looked_for: str) -> Answer:
    """Return the answer about problems in the data, or what was looked for if there is none."""
    if not problems:
        return Answer("Problems in the data", "None found", f"<p>{looked_for}</p>")
    listed = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return Answer("Problems in the data", plural(len(problems), "problem"), f"<ul>{listed}</ul>")
