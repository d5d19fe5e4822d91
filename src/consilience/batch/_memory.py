"""Memory of fits: an estimate before any work, the number of landmarks for "auto", rows of a prediction at a time.

Exact kernels take several matrices of n x n values. A fit that needs more than the memory available is refused before
it starts, with the numbers and a remedy.
"""

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .._backend import available_memory, check_memory, memory_of
from ..solvers.design import BLOCK
from ..views import _blocks

EXACT_SAMPLES = 5000  # samples up to which n_components="auto" takes exact kernels
_PER_ROOT = 12.0  # landmarks for "auto", in units of √n; `benchmarks/landmarks.py` measures what they lack
_MOST_LANDMARKS = 2000  # of a view, for "auto"
_FEATURE_MATRICES = 6  # matrices between all features at the peak of a fit over features, with some reserve
_BLOCK_BYTES = 1 << 28  # of kernel values that a prediction holds at a time


class FitSize(NamedTuple):
    """What the memory of an exact fit depends on."""

    n: int  # samples that take part
    m: int  # kernels
    P: int  # outputs
    single: bool = False  # whether kernels are first tried in single precision


# -- matrices of n x n values at the peak of an exact fit
#
# Measured as the peak of resident memory in child processes at 600 and 1,200 samples with 1, 2 and 4 views, by
# `benchmarks/memory.py`. Each formula is at most 1.5 matrices above what was measured.
def _coupled(estimator: Any, m: int) -> float:
    """Count for co-regularized estimators."""
    agreement = m > 1 and _largest(estimator, "agreement_penalty", "agreement_penalties") > 0
    learned = isinstance(estimator.view_weights, str) and estimator.view_weights == "learned"
    chosen = _spectra(estimator) if hasattr(estimator, "alphas") else 0
    if agreement:
        return (3 if learned else 2) * m + 4.5 + chosen
    if estimator.graph_penalty:
        return 3 * m + 4.5 + chosen
    return max(m + 3, 2 * m + 1.5 if learned else 0) + chosen


def _spectra(estimator: Any) -> int:
    """Return how many spectra are kept at once while penalties are chosen: those of ratios that are yet to come."""
    grid = [
        (f"{agreement / alpha:.9e}", f"{estimator.graph_penalty / alpha:.9e}")
        for alpha in np.ravel(estimator.alphas).tolist()
        for agreement in np.ravel(estimator.agreement_penalties).tolist()
    ]
    return max((len({key for key in grid[: k + 1] if key in grid[k:]}) for k in range(len(grid))), default=0)


def _metric(estimator: Any, m: int) -> float:
    """Count for metric learning."""
    if getattr(estimator, "solver", "exact") == "alternating":
        return 9.5 * m**2 + 1  # matrices over all views and samples
    kind = estimator.metric if isinstance(estimator.metric, str) else "given"
    chosen = hasattr(estimator, "alphas")  # the spectrum from which penalties are chosen
    counts = {"learned": 2 * m + 3.5, "block_sparse": 3 * m + 2.5, "covariance": m + 4.5, "diagonal": m + 3.5 + chosen}
    return counts.get(kind, m**2 + 2 * m + 4)  # a metric that is given is a matrix over all views and samples


def _vector_valued(estimator: Any, m: int) -> float:
    """Count for vector-valued estimators; all but the simplest kernels between views have m n rows."""
    kind = estimator.view_kernel if isinstance(estimator.view_kernel, str) else "given"
    plain = kind == "diagonal" and (estimator.operator is None or isinstance(estimator.operator, list | tuple))
    if plain:
        return m + 6 if estimator.operator is None else 2 * m + 8
    return 1.2 * m**2 + m + 4.5 if kind == "covariance" else 4.5 * m**2


def _banded(estimator: Any, m: int) -> float:
    """Count for banded ridge."""
    return max(m + 2.5, 2 * m + 0.5)


def _kernels(estimator: Any, m: int) -> float:
    """Count for multiple kernels and kernels between outputs."""
    return m + 4.5 if hasattr(estimator, "view_weights") else m + 2.5


def _largest(estimator: Any, *names: str) -> float:
    given = [np.max(getattr(estimator, name), initial=0.0) for name in names if hasattr(estimator, name)]
    return float(max(given))


_MATRICES: dict[str, Callable[[Any, int], float]] = {
    **dict.fromkeys(("CoRegularizedRidge", "CoRegularizedRidgeClassifier", "CoRegularizedSVC"), _coupled),
    **dict.fromkeys(("CoRegularizedRidgeCV", "CoRegularizedRidgeClassifierCV"), _coupled),
    **dict.fromkeys(("ViewMetricRidge", "ViewMetricRidgeClassifier"), _metric),
    **dict.fromkeys(("ViewMetricRidgeCV", "ViewMetricRidgeClassifierCV"), _metric),
    **dict.fromkeys(("MultipleKernelRidge", "MultipleKernelRidgeClassifier"), _kernels),
    **dict.fromkeys(("OutputKernelRidge", "OutputKernelRidgeClassifier"), _kernels),
    "BandedRidgeCV": _banded,
    **dict.fromkeys(("VectorValuedRegressor", "VectorValuedClassifier"), _vector_valued),
}


def exact_bytes(estimator: Any, size: FitSize) -> float:
    """Return the bytes at the peak of an exact fit."""
    known = next(_MATRICES[kind.__name__] for kind in type(estimator).__mro__ if kind.__name__ in _MATRICES)
    count = known(estimator, size.m)
    # kernels of single precision are computed by way of distances in double precision
    each = 4 * (count + 2) if size.single else 8 * count
    return each * float(size.n) ** 2 + 8 * 4 * float(size.n) * (size.m + 1) * size.P


# -- before a fit
def plan_memory(estimator: Any, data: Any, *, single: bool = False) -> None:
    """Choose the number of landmarks, store it in `n_components_`, and refuse a fit that needs too much memory.

    `single` says that the fit starts in single precision where all data are in it.
    """
    n, m = data.n_used, len(data.X.names)
    size = FitSize(n, m, data.n_outputs, single and all(_blocks.is_single(data.X.block(name)) for name in data.X.names))
    exact = None if data.by_blocks else exact_bytes(estimator, size)
    with memory_of(*(data.X.block(name) for name in data.X.names)):
        given = chosen_components(estimator, n, m, exact=exact)
        if given is None:
            _check_exact(estimator, size)
        else:
            check_features(estimator, n, m, given)
    if hasattr(estimator, "n_components"):
        estimator.n_components_ = given


def check_double(estimator: Any, data: Any) -> None:
    """Refuse exact kernels in double precision that need too much memory."""
    with memory_of(*(data.X.block(name) for name in data.X.names)):
        _check_exact(estimator, FitSize(data.n_used, len(data.X.names), data.n_outputs))


def chosen_components(estimator: Any, n: int | None, m: int, *, exact: float | None = None) -> int | None:
    """Return the number of landmarks of a fit: `n_components`, a share of n, or that of "auto"; None for exact kernels.

    Samples that are read by blocks have no exact fit.
    """
    given = getattr(estimator, "n_components", None)
    if given is None:
        return None
    if isinstance(given, str):
        return choose_n_components(n, m, memory=available_memory(), exact=exact)
    return int(given) if isinstance(given, Integral) else max(1, round(given * (n or 0)))


def landmarks_of(estimator: Any) -> Any:
    """Return `n_components`, for "auto" the number chosen; None for exact kernels."""
    given = getattr(estimator, "n_components", None)
    return estimator.n_components_ if isinstance(given, str) else given


def margin_components(estimator: Any, n: int, m: int) -> int | None:
    """Return the number of landmarks of a maximum margin estimator, whose exact fit holds a cache of kernel rows."""
    given = chosen_components(estimator, n, m, exact=min(1e6 * estimator.cache_size, 8.0 * n**2))
    if given is not None:
        check_features(estimator, n, m, given)
    return given


def plan_consensus(estimator: Any, n: int, m: int, *, on_device: bool = False) -> int | None:
    """Return the number of landmarks of a consensus of n labeled samples; refuse exact kernels that do not fit."""
    # one base model after the other; few samples are fitted in threads, and share the distances of each view; on a
    # device, factorizations do not take the place of their matrix
    exact = 8 * (8 + m if n <= 2000 else 7 if on_device else 4) * float(n) ** 2
    given = estimator.n_components
    if isinstance(given, str):
        return choose_n_components(n, m, memory=available_memory(), exact=exact)
    if given is not None or n > EXACT_SAMPLES:
        return int(np.clip(4e7 / n, 200, 1000)) if given is None else int(given)  # by default 320 MB of features
    fits = choose_n_components(n, 1, memory=available_memory())
    check_memory(exact, f"{type(estimator).__name__} with {n:,} labeled samples", f"Set n_components={fits}.")
    return None


def choose_n_components(n: int | None, m: int, *, memory: int, exact: float | None = None) -> int | None:
    """Return the number of landmarks per view for n_components="auto"; None where exact kernels are used.

    Up to 5,000 samples kernels are exact, if these fit into memory. More samples get 12 √n landmarks, at most 2,000,
    and at most what fits into half of the memory.

    Parameters
    ----------
    n : int, optional
        Number of samples; None if it is not known before they are read.
    m : int
        Number of kernels.
    memory : int
        Bytes available.
    exact : float, optional
        Bytes that exact kernels need. By default, there is no exact fit.
    """
    if n is not None and exact is not None and n <= EXACT_SAMPLES and exact <= memory:
        return None
    wanted = _MOST_LANDMARKS if n is None else min(_MOST_LANDMARKS, max(100, round(_PER_ROOT * n**0.5)), n)
    return max(1, min(wanted, _most_features(memory / 2) // m))


def _most_features(memory: float) -> int:
    """Return how many features of all views together fit into memory: the root of a quadratic equation."""
    return int((np.sqrt((3 * BLOCK) ** 2 + _FEATURE_MATRICES * memory / 2) - 3 * BLOCK) / (2 * _FEATURE_MATRICES))


def feature_bytes(p: int) -> float:
    """Return the bytes of a fit over p features of all views: matrices between features, and blocks of rows."""
    return 8.0 * (_FEATURE_MATRICES * p**2 + 3 * BLOCK * p)


def _check_exact(estimator: Any, size: FitSize) -> None:
    name, needed = type(estimator).__name__, exact_bytes(estimator, size)
    remedy = "Give fewer samples."
    if hasattr(estimator, "n_components"):
        fits = choose_n_components(size.n, size.m, memory=available_memory())
        remedy = f"Set `n_components`, such as n_components={fits}, or give fewer samples."
    check_memory(needed, f"{name} with {_counts(size.n, size.m)} and exact kernels", remedy)


def check_features(estimator: Any, n: int, m: int, p: int) -> None:
    """Refuse features that need too much memory; there are at most as many as samples."""
    p = min(p, n)
    what = f"{type(estimator).__name__} with {_counts(n, m)} and {p:,} landmarks each"
    fits = max(1, _most_features(available_memory() / 2) // m)
    check_memory(feature_bytes(m * p), what, f"Set `n_components` to at most {fits:,}.")


def _counts(n: int, m: int) -> str:
    return f"{n:,} samples, {m} kernel{'s' * (m > 1)}"


def check_cache(estimator: Any, n: int) -> None:
    """Refuse a cache of kernel rows that is larger than the memory."""
    needed = min(1e6 * estimator.cache_size, 8.0 * n**2)
    megabytes = max(1, int(available_memory() / 2e6))
    check_memory(
        needed,
        f"{type(estimator).__name__} with {n:,} samples and cache_size={estimator.cache_size:g}",
        f"Set a smaller `cache_size`, such as cache_size={megabytes}, or `n_components`.",
    )


# -- predictions
def row_parts(n: int, n_fit: int, most: int = BLOCK) -> Iterator[slice]:
    """Yield blocks of at most `most` of n rows, so that their kernel values against n_fit samples fit into memory.

    At 4,096 rows they take at most 256 MB, and at most an eighth of the memory available.
    """
    limit = _BLOCK_BYTES * max(most // BLOCK, 1)
    if 8 * min(most, n) * n_fit > limit // 8:  # smaller ones are not worth the reading of system files
        limit = min(limit, available_memory() // 8)
    rows = max(min(most, limit // (8 * max(n_fit, 1))), 1)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))
