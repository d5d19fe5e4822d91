"""Tables of benchmarks/consensus.py summary: ranks, shortfalls, probabilities, coverage, missing views.

A cell is a set and a training size; its values are means over the draws. Tests within a cell pair the draws. These
share samples, so that their p-values are too small. The test over cells pairs the means of all cells.
"""

import json

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

CELL = ["task", "set", "size"]
LEVELS = (0.8, 0.9, 0.95)
US = "Consensus"
POINT = 0.01


def read(paths):
    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines() if line]
    found = pd.DataFrame(lines).drop_duplicates(["set", "size", "draw", "missing", "estimator"], keep="last")
    for column in ("error", "log_loss", "ece"):
        found[column] = found.get(column)
    regression = found["set"].str.startswith(("sarcos", "protein", "made"))
    found["task"] = np.where(regression, "regression", "classification")
    return found


def test(differences):
    """Return the p-value of the Wilcoxon signed-rank test; 1 if nothing differs."""
    differences = np.asarray(differences, dtype=float)
    return float(wilcoxon(differences).pvalue) if len(differences) > 1 and np.any(differences != 0) else 1.0


def paired(found, measure):
    """Return one row per set, size and draw with a column per estimator, for draws that Consensus has."""
    table = found.pivot_table(index=[*CELL, "draw"], columns="estimator", values=measure)
    table = table.drop(columns=[name for name in table if name.startswith("SVM on view")])
    return table[table[US].notna()] if US in table else table.iloc[:0]


def ranks(table, sign, title):
    """Print mean ranks, and wins and losses of Consensus, over cells where an estimator and Consensus have values."""
    if table.empty:
        return
    everywhere = table.columns[table.notna().groupby(level=CELL).any().mean() > 0.95]
    common = table[everywhere].dropna()
    means = (sign * common).groupby(level=CELL).mean()
    print(f"\n{title}: {len(means)} cells, {len(common)} draws in all; rank 1 is best, of {len(everywhere)} estimators")
    head = f"{'':32}{'rank':>7}{'mean':>9}{'wins':>6}{'losses':>8}{'p':>9}{'cells':>7}"
    head += f"{'clear wins':>12}{'clear losses':>14}"
    print(head + "   of Consensus against it")
    order = means.rank(axis=1, ascending=False).mean().sort_values()
    others = [name for name in table.columns if name not in order.index]
    for name in [*order.index, *others]:
        both = (sign * table[[US, name]]).dropna() if name != US else None
        rank = f"{order[name]:7.2f}" if name in order.index else f"{'-':>7}"
        value = f"{sign * means[name].mean():9.4f}" if name in order.index else f"{'-':>9}"
        if both is None or both.empty:
            print(f"{name:32}{rank}{value}")
            continue
        draws = both[US] - both[name]
        by_cell = draws.groupby(level=CELL)
        mean, p = by_cell.mean(), by_cell.apply(test)
        clear = p < 0.05
        print(
            f"{name:32}{rank}{value}{(mean > 0).sum():6}{(mean < 0).sum():8}{test(mean):9.1e}{len(mean):7}"
            f"{(clear & (mean > 0)).sum():12}{(clear & (mean < 0)).sum():14}"
        )


def shortfalls(found, table, title):
    """Print the cells in which the best tuned rival, chosen with hindsight, is ahead of Consensus."""
    if table.empty:
        return
    views = found[found["estimator"].str.startswith("SVM on view")].groupby([*CELL, "estimator"])["score"].mean()
    means = table.groupby(level=CELL).mean()
    rivals = means.drop(columns=[US, *(name for name in means if name.endswith("default"))])
    if len(views):
        rivals = rivals.join(views.unstack(), how="left")
    gap = (means[US] - rivals.max(axis=1)).sort_values()
    best = rivals.idxmax(axis=1)
    print(
        f"\n{title}: Consensus minus the best tuned rival of each cell (the best of {rivals.shape[1]} with hindsight)"
    )
    print(
        f"at least as good in {(gap >= 0).sum()} of {len(gap)} cells; more than a point below in {(gap < -POINT).sum()}"
    )
    print(f"{'set':24}{'size':>6}{'Consensus':>11}{'rival':>9}{'gap':>9}{'p':>9}{'draws':>7}  rival")
    for cell in gap.index[:15]:
        if gap[cell] >= 0:
            break
        name = best[cell]
        both = table.loc[cell, [US, name]].dropna() if name in table else None
        p = "-" if both is None else f"{test(both[US] - both[name]):.3f}"
        n = table.loc[cell, US].notna().sum()
        values = f"{means.loc[cell, US]:11.4f}{rivals.loc[cell, name]:9.4f}{gap[cell]:9.4f}"
        print(f"{cell[1]:24}{cell[2]:6}{values}{p:>9}{n:7}  {name}")


def by_set(table, title):
    """Print Consensus and the three best tuned rivals of each set, over its sizes."""
    if table.empty:
        return
    means = table.groupby(level=CELL).mean()
    print(f"\n{title}")
    for cell, row in means.iterrows():
        best = row.drop(US).dropna().sort_values(ascending=False)[:3]
        print(f"{cell[1]:22}{cell[2]:5}{row[US]:9.4f}   " + ", ".join(f"{n} {v:.4f}" for n, v in best.items()))


def coverage(found):
    own = found[(found["estimator"] == US) & found.get(f"coverage_{LEVELS[0]}", pd.Series(dtype=float)).notna()]
    print("\nCoverage of sets and intervals of Consensus, and mean size of sets or width in standard deviations")
    print(f"{'':30}" + "".join(f"{f'{level:.0%}':>9}{'size':>8}" for level in LEVELS) + f"{'draws':>8}")
    for (task, missing), part in own.groupby(["task", "missing"]):
        cells = part.groupby(["set", "size"])
        for what, of in (("mean", cells.mean(numeric_only=True).mean()), ("smallest of cells", None)):
            values = of if of is not None else cells.mean(numeric_only=True).min()
            show = "".join(
                f"{values[f'coverage_{level}']:9.3f}"
                + (f"{values[f'size_{level}']:8.2f}" if of is not None else f"{'':8}")
                for level in LEVELS
            )
            label = f"{task}, {missing:.0%} missing" if of is not None else f"  {what}"
            print(f"{label:30}{show}{len(part):8}")
    complete = own[own["missing"] == 0]
    print("\nThe same by training size, complete views")
    for (task, size), part in complete.groupby(["task", "size"]):
        show = "".join(
            f"{part[f'coverage_{level}'].mean():9.3f}{part[f'size_{level}'].mean():8.2f}" for level in LEVELS
        )
        print(f"{task + ', ' + str(size):30}{show}{len(part):8}")


def missing_views(found):
    part = found[found["missing"] > 0]
    sizes = part.groupby(["set", "size"]).size().index
    names = {"HistGradientBoosting": "EarlyFusion HGB"}  # the same fit where nothing is missing
    complete = found[found["missing"] == 0].set_index(["set", "size"])
    complete = complete[complete.index.isin(sizes)].reset_index().replace({"estimator": names})
    both = pd.concat([complete[complete["estimator"].isin(part["estimator"].unique())], part])
    for measure, title in (("score", "accuracy or R²"), ("log_loss", "log loss"), ("ece", "calibration error")):
        print(f"\nViews missing at random, {title}: means over sets, middle size")
        for task, own in both.groupby("task"):
            cells = (
                own.groupby(["set", "size", "missing", "estimator"])[measure].mean().unstack().dropna(axis=1, how="all")
            )
            if cells.empty or US not in cells:
                continue
            cells = cells.dropna()
            table = cells.groupby(level="missing").mean()
            best = (cells.idxmax(axis=1) if measure == "score" else cells.idxmin(axis=1)).groupby(level="missing")
            print(f"{task:16}{'cells':>6}" + "".join(f"{name:>32}" for name in table))
            for share, row in table.iterrows():
                firsts = best.get_group(share).value_counts()
                cellsof = (f"{v:.4f} (best of {firsts.get(n, 0)})" for n, v in row.items())
                print(f"{share:16.0%}{len(best.get_group(share)):6}" + "".join(f"{text:>32}" for text in cellsof))


def summary(options):
    found = read(options.file)
    failed = found[found["error"].notna()]
    if len(failed):
        print(f"{len(failed)} fits failed:")
        for (name, why), part in failed.groupby(["estimator", "error"]):
            where = sorted({f"{s} {n}" for s, n in zip(part["set"], part["size"], strict=True)})
            print(f"  {name} ({len(part)}; {', '.join(where[:4])}): {why}")
    complete = found[(found["missing"] == 0) & found["error"].isna()]
    for task, title in (("classification", "Accuracy"), ("regression", "R²")):
        own = complete[complete["task"] == task]
        if own.empty:
            continue
        table = paired(own, "score")
        ranks(table, 1, title)
        shortfalls(own, table, title)
        by_set(table, f"{title} of Consensus and of the three best others")
        if task == "classification":
            likely = own[own["log_loss"].notna()]
            ranks(paired(likely, "log_loss"), -1, "Log loss")
            ranks(paired(likely, "ece"), -1, "Expected calibration error")
            shortfalls(likely.assign(score=-likely["log_loss"]), -paired(likely, "log_loss"), "Minus log loss")
        times = own[own["score"].notna()].groupby("estimator")["seconds"].mean().sort_values()
        print(f"\nMean seconds with tuning, {task}: " + ", ".join(f"{n} {s:.2f}" for n, s in times.items()))
    if "coverage_0.8" in found:
        coverage(found)
    if (found["missing"] > 0).any():
        missing_views(found[found["error"].isna()])
