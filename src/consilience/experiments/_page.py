"""The page of all experiments, in Markdown, from the files that runs have written."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ._experiment import Claim, Experiment, Results, Table
from ._run import SHORT, read_results

_INTRODUCTION = """# Reproduced experiments

Published tables and figures, run again with this library. `consilience reproduce NAME` runs one of them, and
`consilience reproduce --list` lists all names. `make reproduce` runs all of them and makes this page; it takes
{hours} of one core. The measurements are in `docs/results`, one JSON file for each experiment.

Measured values are means over draws, ± half the width of the 95% interval of the mean (Student's t). Draws of one
experiment often share test samples, so these intervals cover the draws alone and not another test set. Published
values are as printed; their ± are standard deviations. A claim is a statement of the paper. It *holds* if the
measurements agree with it; otherwise a sentence says what was found.
"""


def page(experiments: Iterable[Experiment], folder: Path) -> str:
    """Return the page of all experiments whose full results are in a folder; others are named."""
    known = list(experiments)
    found = [each for each in known if (folder / f"{each.name}.json").exists()]
    if not found:
        raise FileNotFoundError(f"'{folder}' has no results of a full experiment. Run one first, without --quick.")
    hours = _time(sum(each.minutes for each in known))
    parts = [_INTRODUCTION.format(hours=hours), _overview(known, found, folder)]
    paper = ""
    for experiment in known:
        if experiment.paper != paper:
            paper = experiment.paper
            parts.append(f"## {paper}\n")
        if experiment in found:
            parts.append(_section(experiment, *read_results(folder, experiment.name)))
        else:
            parts.append("\n".join([*_head(experiment), "It has no full results here yet.", ""]))
    return "\n".join(parts)


def summary(experiment: Experiment, record: dict[str, Any], results: Results) -> str:
    """Return tables and claims of one run as text; claims are of full runs alone."""
    parts = [_table(table) for table in experiment.tables(results)]
    if record["quick"] or record["seeds"] < experiment.seeds:
        parts.append("The claims of the paper need all draws of a full run.")
    else:
        parts += [_claim(claim) for claim in experiment.claims(results)]
    return "\n".join(parts)


def _overview(known: list[Experiment], found: list[Experiment], folder: Path) -> str:
    rows = []
    for each in known:
        held = "no full results yet"
        if each in found:
            claims = each.claims(read_results(folder, each.name)[1])
            held = f"{sum(claim.holds for claim in claims)} of {len(claims)}"
        rows.append([each.paper, each.shown_in, f"[{each.title}](#{each.name})", held])
    return _table(Table("", ["paper", "shown in", "experiment", "claims that hold"], rows))


def _head(experiment: Experiment) -> list[str]:
    """Return title, command and protocol."""
    return [
        f"({experiment.name})=",
        f"### {experiment.title}",
        "",
        f"{experiment.shown_in}. `consilience reproduce {experiment.name}`, {_time(experiment.minutes)} of one core.",
        "",
        f"**Protocol.** {experiment.protocol}",
        "",
    ]


def _section(experiment: Experiment, record: dict[str, Any], results: Results) -> str:
    short = sum(found.get(SHORT, 0) for _, found in results.cells)
    parts = [
        *_head(experiment),
        *(_table(table) for table in experiment.tables(results)),
        "**Claims.**",
        "",
        *(_claim(claim) for claim in experiment.claims(results)),
        "",
        "**Differences from the paper.** " + " ".join(experiment.differences),
        "",
        f"Made at commit {record['commit']}, {record['seeds']} draws, {len(record['cells']):,} measurements."
        + (f" {short:,} fits ended before their tolerance." if short else ""),
        "",
    ]
    return "\n".join(parts)


def _claim(claim: Claim) -> str:
    if claim.holds:
        return f"- *Holds:* {claim.text} Measured: {claim.evidence}."
    return f"- *Does not hold:* {claim.text} Measured: {claim.evidence}. {claim.note}"


def _table(table: Table) -> str:
    lines = [f"{table.title}:", ""] if table.title else []
    lines += ["| " + " | ".join(row) + " |" for row in (table.heads, ["---"] * len(table.heads), *table.rows)]
    return "\n".join([*lines, ""])


def _time(minutes: float) -> str:
    if minutes < 1.5:
        return "less than a minute" if minutes < 1 else "a minute"
    return f"about {minutes:.0f} minutes" if minutes < 90 else f"about {minutes / 60:.0f} hours"
