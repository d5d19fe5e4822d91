"""What the ranking perceptron reads and proves: parameters, samples with outputs, candidates, mistake bounds."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..solvers.certificates import MistakeCertificate, perceptron_bound
from ..views._reading import is_missing
from ..views._samples import in_order_of
from ..views.validation import read_views_to_learn, remember
from ._bounds import ComparedSamples
from ._candidates import (
    Choice,
    OutputList,
    as_items,
    check_lengths,
    margins_of,
    output_key,
    read_candidates_of,
    sample_of,
    short_text,
)
from ._pairs import PairMachine, as_output_block
from ._targets import Chunk

_SAMPLES = 3000  # maximum number of samples on which comparators are learned
_PASSES = 20  # over these samples


def check_ranking(estimator: Any) -> None:
    """Validate that the parameters of a ranking perceptron go together."""
    features, joint, candidates, decode = (
        getattr(estimator, name) for name in ("features", "joint_kernel", "candidates", "decode")
    )
    if features is not None and joint is not None:
        raise ValueError("`features` and `joint_kernel` both say what φ is. Give one of them.")
    if isinstance(joint, Kernel):
        raise ValueError(
            f"`joint_kernel` is {joint!r}, a kernel between samples or between outputs. Say which: give (k, None) for "
            "samples, (None, k) for outputs, or both."
        )
    if isinstance(joint, tuple) and (len(joint) != 2 or all(part is None for part in joint)):
        raise ValueError(
            "`joint_kernel` must be a kernel between samples and one between outputs, one of which may be None; got "
            f"{joint!r}."
        )
    if features is None and joint is None and not (candidates is None and decode is None):
        raise ValueError(
            "`candidates` and `decode` need `features` or `joint_kernel`. Without them outputs are classes, which "
            "partial_fit(classes=...) announces."
        )
    if decode is None:
        return
    if features is None or candidates is not None:
        raise ValueError(
            "`decode` finds the best output by the weights of `features`. It needs these, and no `candidates`."
        )
    if estimator._averages() == "voted":
        raise ValueError(
            "average='voted' would call `decode` for every update and every sample. Use average=True, its usual "
            "approximation (Collins 2002)."
        )


def read_ranked(
    estimator: Any, X: Any, y: Any, *, fresh: bool, whole: bool = False
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the samples that have an output, these outputs, and the positions of the samples."""
    if estimator._reads_views():
        X = read_views_to_learn(estimator, X, fresh, grams=whole)
        y = in_order_of(X, y, "y")
    else:
        X = as_items(X, "X")
    outputs = as_items(y, "y")
    check_lengths(len(X), len(outputs))
    given = np.array([i for i, output in enumerate(outputs) if not is_missing(output)], dtype=np.int64)
    if whole and not len(given):
        raise ValueError("y has no output at all: every value is missing. Give outputs for some samples.")
    return (X, outputs, given) if len(given) == len(X) else (X[given], outputs[given], given)


# -- candidates
def choices_of(estimator: Any, X: Any) -> list[Choice]:
    """Return the candidates of each sample."""
    if not callable(estimator.candidates):
        return [Choice(estimator._outputs.outputs)] * len(X)
    return [Choice(_candidates_of(estimator, X, i).outputs) for i in range(len(X))]


def choices_to_learn(estimator: Any, X: Any, outputs: Any) -> tuple[list[Choice], np.ndarray]:
    """Return the candidates of each sample with the true output among them, and which outputs are new."""
    choices, new = [], np.zeros(len(outputs), dtype=bool)
    for i, output in enumerate(outputs):
        key = output_key(output)
        if callable(estimator.candidates):
            own = _candidates_of(estimator, X, i)
        else:
            if estimator.candidates is None and key not in estimator._outputs.places:
                estimator._outputs, new[i] = estimator._outputs.with_new([output]), True
            own = estimator._outputs
        if key not in own.places:
            raise ValueError(
                f"The output {short_text(output)} of a sample is not among its {len(own.outputs)} candidates. Let "
                "`candidates` include it, or give as y the candidate that is nearest to it."
            )
        choices.append(Choice(own.outputs, own.places[key]))
    return choices, new


def _candidates_of(estimator: Any, X: Any, i: int) -> Any:
    x = sample_of(X, i)
    return read_candidates_of(estimator.candidates(x), x)


# -- mistake bounds
def ranking_certificate(estimator: Any, best: MistakeCertificate, given: ComparedSamples) -> MistakeCertificate:
    """Return the mistakes and their bound by the best of the comparators, rescaled; `best` is that of 0."""
    if estimator.decode is not None:
        raise ValueError(
            "The loss of a comparator needs the second best output of every sample, which `decode` does not find. Give "
            "`candidates` instead, or call certificate() without samples."
        )
    X, outputs, _ = read_ranked(estimator, given.X, given.y, fresh=False)
    n, machine, joint = estimator.n_samples_seen_, estimator._machine, estimator._joint()
    if not len(outputs) or n % len(outputs):  # passes of `fit` see all samples equally often
        raise ValueError(
            f"RankingPerceptron learned {n} samples, and {len(outputs)} are given. The bound needs all of them, in one "
            "chunk."
        )
    if given.comparator is not None and not hasattr(machine, "vector"):
        raise ValueError("`comparator` gives weights of features. With `joint_kernel` leave it out.")
    if not machine.is_definite(joint):
        return replace(best, bound=None, loss=None, norm=None)
    best, n_passes = replace(best, size=machine.size**0.5), n // len(outputs)
    choices, _ = choices_to_learn(estimator, X, outputs)
    own = None if given.comparator is None else machine.vector(given.comparator)
    for of, u in _comparators(machine, joint, X, choices) if own is None else ((machine, own),):
        margins, norm = margins_of(of.scores(joint, X, choices, u), choices), of.norm(joint, u)
        top = float(np.abs(margins[np.isfinite(margins)]).max(initial=0.0)) or 1.0
        # relative to the length at which the largest margin is 1
        for scale in np.geomspace(1e-2, 1e4, 61) / top if own is None else (1.0,):
            loss = n_passes * float(np.maximum(1 - scale * margins, 0.0).sum())
            # an output that was not a candidate before adds one mistake
            bound = perceptron_bound(loss, machine.size**0.5, scale * norm) + estimator._n_late
            if own is not None or (best.bound is not None and bound < best.bound):
                best = replace(best, bound=bound, loss=loss, norm=scale * norm)
    return best


def _comparators(machine: Any, joint: Any, X: Any, choices: list[Choice]) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield hypotheses with the machines that score them: those learned, and those of a perceptron with a margin.

    Where outputs are separated, a margin of 2 R² leads to at least 0.4 of the widest margin (`perceptron_bound`).
    """
    yield from ((machine, machine.coefs), (machine, machine.mean()))
    if isinstance(machine, PairMachine) and joint is not None:  # a function of pairs is too slow for more passes
        return
    wide, some = machine.fresh(), np.unique(np.linspace(0, len(choices) - 1, _SAMPLES).astype(int))
    wide.margin = 2 * machine.size
    for _ in range(_PASSES):
        before = wide.n_updates
        wide.learn(joint, X[some], [choices[i] for i in some], some)
        if wide.n_updates == before:
            break
    yield from ((wide, wide.coefs), (wide, wide.mean()))


def refuse_weights(sample_weight: Any) -> None:
    """Refuse weights of samples, which a ranking of outputs does not take."""
    if sample_weight is not None:
        raise ValueError(
            "A ranking by `features` or `joint_kernel` takes no sample weights. Leave `sample_weight` out."
        )


def learn_ranked(estimator: Any, X: Any, y: Any) -> None:
    """Learn a chunk of samples with outputs of any kind, completely or not at all."""
    fresh = not hasattr(estimator, "n_samples_seen_")
    if not fresh:
        estimator._check_fixed()
    X, outputs, given = read_ranked(estimator, X, y, fresh=fresh)
    if estimator._reads_views():
        estimator._check_views(X, whole=False)
    one = len(outputs) == 1 and estimator._is_primal()
    before = dict(estimator.__dict__) if one else estimator._snapshot()
    try:
        if fresh:
            estimator._begin_ranking()
            resolve_outputs(estimator, None)
        if estimator._reads_views():
            remember(estimator, X)
        ids = estimator._next_id + np.arange(len(given))
        estimator._learn_chunk(Chunk(X, outputs, np.ones(len(outputs)), ids))
        estimator._next_id += len(given)
    except Exception:  # such as a function that fails: the chunk is not learned at all
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def share_of_right(best: list[Any], truth: Any, sample_weight: Any) -> float:
    """Return the share of right outputs among samples that have one."""
    given = [i for i, output in enumerate(truth) if not is_missing(output)]
    right = [output_key(best[i]) == output_key(truth[i]) for i in given]
    return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)[given]))


def resolve_outputs(estimator: Any, outputs: np.ndarray | None) -> None:
    """Compute what the kernel between outputs takes from data, which is known in `fit` only."""
    kernel = getattr(estimator._machine, "output_kernel", None)
    if kernel is not None and kernel._unresolved():
        if outputs is None:
            raise ValueError(
                f"The kernel between outputs, {kernel!r}, takes a parameter from the data, which a stream does not "
                "have at once. Give it a number, or use `fit`."
            )
        different = OutputList().with_new(outputs).outputs
        estimator._machine.output_kernel = kernel.resolved(as_output_block(different))
