"""Tables and claims of the experiments with ETH-80, where methods have errors by draw and by setting."""

from typing import Any, NamedTuple

import numpy as np

from ._experiment import Cell, Claim, Results, Table, half_width, with_interval

VIEWS = ("color", "dxdy", "maglap", "shape")
TRAIN = 574  # 70% of 820 images, and all images of 14 of 20 objects
SMALL = (40, 80)
SAME: dict[str, Any] = {"train": TRAIN, "new objects": False}


class Problem(NamedTuple):
    """Two categories, the sets of views that are compared, and what the thesis says of single views."""

    categories: tuple[str, str]
    sets: dict[str, tuple[str, ...]]
    published: dict[str, str]  # training errors in percent, as described


def best_errors(results: Results, name: str, part: str, views: Any = VIEWS, **given: Any) -> np.ndarray:
    """Return the errors of all draws in the setting with the least mean: the best p, C or single view."""
    errors = results.values(f"{name} {part}", **given)
    if name == "single":
        errors = errors[:, [VIEWS.index(view) for view in views]]
    return errors[:, errors.mean(axis=0).argmin()]


def chosen_errors(results: Results, name: str, **given: Any) -> np.ndarray:
    """Return test errors in the setting that made the fewest mistakes in the training pass of the same draw."""
    settings = results.values(f"{name} training", **given).argmin(axis=1)
    return results.values(f"{name} test", **given)[np.arange(len(settings)), settings]


def tables_of(problem: Problem, results: Results) -> list[Table]:
    """Return the tables of one problem."""
    sizes = results.levels("train")
    same, new = ({"train": sizes[0], "new objects": each} for each in (False, True))
    single = [
        [view, problem.published[view]]
        + [
            with_interval(results.values(f"single {part}", **given)[:, k])
            for given in (same, new)
            for part in ("training", "test")
        ]
        for k, view in enumerate(VIEWS)
    ]
    methods = ["OMMP two", "OMCL two", "OMMP three", "OMMP four", "OMCL four"]
    several = [
        [_label(problem, method)]
        + [
            with_interval(values)
            for given in (same, new)
            for values in (
                best_errors(results, method, "training", **given),
                best_errors(results, method, "test", **given),
                chosen_errors(results, method, **given),
            )
        ]
        for method in methods
    ]
    few = [
        [str(size), "new" if given["new objects"] else "the same"]
        + [with_interval(best_errors(results, "single", "test", **given))]
        + [with_interval(chosen_errors(results, method, **given)) for method in methods if "three" not in method]
        for size in sorted(sizes)
        for given in ({"train": size, "new objects": each} for each in (False, True))
    ]
    ends = ["training", "test", "test, chosen"]
    return [
        Table(
            "Single views, errors in percent",
            ["view", "thesis, training", *(f"{which} objects, {end}" for which in ("same", "new") for end in ends[:2])],
            single,
        ),
        Table(
            "Several views, errors in percent with the best p or C of these runs, and with those chosen in training",
            ["", *(f"{which} objects, {end}" for which in ("same", "new") for end in ends)],
            several,
        ),
        _by_power(problem, results, same),
        Table(
            "Test errors in percent by the number of training images, with p and C chosen in training",
            [
                "training images",
                "test objects",
                "best single view",
                *(f"{each} views" for each in methods if "three" not in each),
            ],
            few,
        ),
    ]


def _by_power(problem: Problem, results: Results, given: Cell) -> Table:
    powers = results.cells[0][0]["powers"]
    shown = [k for k, p in enumerate(powers) if p in (1, 2, 3, 5, 8, 12, 16, 20)]
    rows = [
        [", ".join(problem.sets[name]), part]
        + [f"{error:.2f}" for error in results.values(f"OMMP {name} {part}", **given).mean(axis=0)[shown]]
        for name in problem.sets
        for part in ("training", "test")
    ]
    return Table(
        "OMMP by p, same objects, errors in percent", ["views", "", *(f"p = {powers[k]}" for k in shown)], rows
    )


def _label(problem: Problem, method: str) -> str:
    kind, name = method.split()
    return f"{kind}, {', '.join(problem.sets[name])}"


# -- claims: on images of the same objects, with the best p and C of these runs, as in the thesis
def gain_over_best(results: Results, problem: Problem, method: str, part: str) -> np.ndarray:
    """Return by how much a method is better than the best of its single views, by draw."""
    views = problem.sets[method.split()[1]]
    return best_errors(results, "single", part, views, **SAME) - best_errors(results, method, part, **SAME)


def improves(gain: np.ndarray) -> bool:
    """Return whether the interval of a gain is above 0."""
    return bool(gain.mean() > half_width(gain))


def combined_claim(
    problem: Problem, results: Results, name: str, part: str, text: str, note: str, gains: bool
) -> Claim:
    """Return the claim that both methods improve on the best of their views, or that both do not."""
    found = {kind: gain_over_best(results, problem, f"{kind} {name}", part) for kind in ("OMMP", "OMCL")}
    holds = all(improves(gain) == gains for gain in found.values())
    shown = ", ".join(f"{kind} gains {with_interval(gain, sign=True)} points" for kind, gain in found.items())
    return Claim(text, holds, shown, note)


def omcl_less_ommp(results: Results, name: str, part: str, **given: Any) -> np.ndarray:
    """Return the errors of OMCL less those of OMMP, by draw."""
    return best_errors(results, f"OMCL {name}", part, **given) - best_errors(results, f"OMMP {name}", part, **given)


def similarity_claim(results: Results) -> Claim:
    """Return the claim that OMMP and OMCL end with similar errors."""
    gaps = {
        name: chosen_errors(results, f"OMCL {name}", **SAME) - chosen_errors(results, f"OMMP {name}", **SAME)
        for name in ("two", "four")
    }
    shown = " and ".join(f"{with_interval(gap, sign=True)} points on {name} views" for name, gap in gaps.items())
    return Claim(
        "OMMP and OMCL have similar test errors (section 4.3), within 2 points if p and C are chosen in training.",
        all(abs(gap.mean()) < 2 for gap in gaps.values()),
        f"OMCL less OMMP is {shown}",
        "On one of the sets of views the difference is larger.",
    )


def few_samples_claim(results: Results) -> Claim:
    """Return the claim that OMMP is better than OMCL on small training sets, each with its setting of the training."""
    parts = {
        f"{size} images, {'new' if new else 'the same'} objects, {name} views": (
            chosen_errors(results, f"OMCL {name}", **{"train": size, "new objects": new})
            - chosen_errors(results, f"OMMP {name}", **{"train": size, "new objects": new})
        )
        for size in SMALL
        for new in (False, True)
        for name in ("two", "four")
    }
    shown = "; ".join(f"{name} {with_interval(values, sign=True)}" for name, values in parts.items())
    return Claim(
        "With few training images OMMP has fewer test errors than OMCL.",
        all(improves(values) for values in parts.values()),
        f"OMCL less OMMP with {shown}",
        "Where an interval contains 0, the two cannot be told apart with these draws.",
    )
