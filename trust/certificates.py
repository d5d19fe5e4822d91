"""Certificates against independent computations: the printed objective is that of the coefficients, the optimum is at
most the printed gap below it, and streams have at most as many mistakes as their bounds say.

    python trust/certificates.py            a few problems of each family, as in the tests
    python trust/certificates.py --long     thousands of them
    python trust/certificates.py --family max_margin --seed 17      one problem again
"""

import os

if __name__ == "__main__":  # threads of BLAS only wait for each other on matrices this small
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import _families
import _moved
import _streams
import consilience as cs
from check import Check, Figure, Found, main
from fuzzing.properties import check_sentence, explain

Family = Callable[[np.random.Generator], Any]
RIDGE = (
    cs.CoRegularizedRidge,
    cs.CoRegularizedRidgeClassifier,
    cs.CoRegularizedRidgeCV,
    cs.CoRegularizedRidgeClassifierCV,
)
METRIC = (cs.ViewMetricRidge, cs.ViewMetricRidgeClassifier, cs.ViewMetricRidgeCV, cs.ViewMetricRidgeClassifierCV)
#: Families of batch problems, and the estimators that solve them: classifiers and those with cross-validation end with
#: the same problem.
BATCH: dict[Family, tuple[type, ...]] = {
    _families.coregularized_ridge: RIDGE, _families.coregularized_learned: RIDGE,
    _families.coregularized_svc: (cs.CoRegularizedSVC,), _families.learned_svc: (cs.CoRegularizedSVC,),
    _families.metric_per_output: METRIC, _families.metric_of_all_outputs: METRIC, _families.metric_block_sparse: METRIC,
    _families.metric_as_published: METRIC, _families.metric_fixed: METRIC, _families.metric_learned_weights: METRIC,
    _families.multiple_kernels: (cs.MultipleKernelRidge, cs.MultipleKernelRidgeClassifier),
    _families.output_kernel: (cs.OutputKernelRidge, cs.OutputKernelRidgeClassifier),
    _families.max_margin: (cs.MaxMarginClassifier,), _families.max_margin_intercept: (cs.MaxMarginClassifier,),
    _families.max_margin_outputs: (cs.MaxMarginRegressor,),
    _families.vector_valued_ridge: (cs.VectorValuedRegressor, cs.VectorValuedClassifier),
    _families.vector_valued_svm: (cs.VectorValuedClassifier,),
}  # fmt: skip
MOVED: tuple[Family, ...] = (_moved.moved_metric, _moved.moved_dual, _moved.moved_kernel_weights, _moved.moved_weights)
STREAMS: tuple[Family, ...] = (_streams.mistakes, _streams.losses, _streams.vector_updates)
SHORT, LONG = 2, 500  # problems of each family


class Result(NamedTuple):
    """What a family of problems gave."""

    family: Family
    claims: list[Any]
    failures: list[str]
    n_refused: int

    @property
    def tried(self) -> int:
        """Number of problems with a claim."""
        return len(self.claims)

    def largest(self, name: str) -> float:
        """Return the largest value of a property."""
        return max((getattr(each, name) for each in self.claims), default=0.0)


def try_family(family: Family, seeds: Sequence[int]) -> Result:
    """Draw the problems of some seeds; a claim that does not hold and any error but a refusal are failures."""
    claims, failures, refused = [], [], 0
    for seed in seeds:
        again = f"python trust/certificates.py --family {family.__name__} --seed {seed}"
        try:
            claim = family(np.random.default_rng([len(family.__name__), seed]))
        except ValueError as error:
            try:
                check_sentence(error)
                refused += 1
            except AssertionError as raw:
                failures.append(f"{again}: {raw}")
            continue
        except Exception as error:  # an error of the library is a failure, and the others are tried
            failures.append(f"{again}: {explain(error)}")
            continue
        if claim is None:  # nothing is claimed
            continue
        claims.append(claim)
        if not claim.holds:
            failures.append(f"{again}: {claim}")
    return Result(family, claims, failures, refused)


def run(long: bool) -> Found:
    """Try all families."""
    size = LONG if long else SHORT
    groups: dict[str, list[Result]] = {}
    for title, families in (("certificates of fits", BATCH), ("bounds at moved points", MOVED), ("streams", STREAMS)):
        groups[title] = []
        for family in families:
            groups[title].append(try_family(family, range(size)))
            for failure in groups[title][-1].failures[:5]:
                print(failure)
    figures, rows = [], []
    for title, results in groups.items():
        claims = [claim for result in results for claim in result.claims]
        early = Counter(claim.status in ("max_iter", "stalled", "inexact") for claim in claims)[True]
        worst = max(result.largest("violation") for result in results)
        note = (
            f"largest violation {worst:.1g} of the objective" if title != "streams" else f"largest excess {worst:.1g}"
        )
        note += f"; {early:,} were stopped early" if early else ""
        figures.append(
            Figure(title, sum(r.tried + len(_errors(r)) for r in results), sum(len(r.failures) for r in results), note)
        )
        for result in results:
            agreed = sum(claim.found for claim in result.claims)
            row = [str(result.family.__doc__).rstrip("."), f"{result.tried:,}", f"{agreed:,}", f"{result.n_refused:,}"]
            rows.append([*row, f"{result.largest('misprint'):.1g}", f"{result.largest('violation'):.1g}"])
    heads = [
        "problems",
        "tried",
        "optimum found again",
        "refused",
        "largest error of the objective",
        "largest violation of the bound",
    ]
    return Found(figures, [("Families of problems, with the largest errors relative to the objective", heads, rows)])


def _errors(result: Result) -> list[str]:
    """Return the failures that have no claim."""
    return [text for text in result.failures if "Claim(" not in text and "Counted(" not in text]


CHECK = Check(
    "certificates",
    "Certificates against independent optima",
    "The printed objective is the published formula at the returned coefficients. The optimum is at most the printed "
    "gap below it, also where a solver was stopped early and at random points. Streams have at most as many mistakes "
    "and losses as their bounds say, also those of an adversary.",
    run,
    (
        "Problems have 4 to 30 samples, 1 to 4 views and penalties over eight orders of magnitude.",
        "A bound on a problem that is not convex is compared with the best of many starting points.",
        "Where weights of views are learned and views are missing, no gap is claimed, and none is tried.",
        "Bounds that hold with a probability are not tried.",
    ),
)


if __name__ == "__main__":
    if "--family" in sys.argv:
        name, seed = sys.argv[sys.argv.index("--family") + 1], int(sys.argv[sys.argv.index("--seed") + 1])
        one = next(family for family in (*BATCH, *MOVED, *STREAMS) if family.__name__ == name)
        print(one(np.random.default_rng([len(name), seed])))
        sys.exit()
    sys.exit(main(CHECK))
