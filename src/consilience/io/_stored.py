"""Training samples inside fitted models: where they are and how many there are."""

import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..kernels.features import Nystroem
from ..kernels.normalization import Centered
from ..online._dual import Support
from ..online._link import LinkMachine
from ..online._pairs import PairMachine
from ..online._ranking import FeatureMachine
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.container import Views
from ..views.running import RunningStep

LEAST_SAMPLES = 5  # samples in a statistic or a function that does not describe single ones
#: Attributes by which estimators of scikit-learn keep samples, or sorted values of each column
ROW_ATTRIBUTES = (
    "support_vectors_", "_fit_X", "X_fit_", "X_train_", "X_", "tree_", "_tree", "quantiles_", "X_thresholds_",
    "x_scores_", "_x_scores", "embedding_",
)  # fmt: skip
_LEAVES = (
    str, bytes, int, float, complex, np.generic, type(None), type, types.FunctionType, types.MethodType,
    types.BuiltinFunctionType, types.ModuleType,
)  # fmt: skip


# -- the parts of a model
def walk(value: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield a model and everything in it, each once, with the views that it is about."""
    left: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    seen: set[int] = set()
    while left:
        part, views = left.pop()
        if isinstance(part, _LEAVES) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part, views
        if hasattr(part, "view_names_in_"):
            views = tuple(getattr(part, "_used_views", part.view_names_in_))
        if isinstance(part, Mapping):  # dicts by view hold what is about one view
            left += [(child, (key,) if key in views else views) for key, child in part.items()]
        elif isinstance(part, (list, tuple, set, frozenset)):
            left += [(child, views) for child in part]
        elif isinstance(part, np.ndarray):
            left += [(child, views) for child in part.ravel()] if part.dtype == object else []
        elif not sp.issparse(part) and hasattr(part, "__dict__"):
            left += [(child, views) for child in vars(part).values()]


def is_ours(value: Any) -> bool:
    """Tell whether an object is of this library."""
    return type(value).__module__.partition(".")[0] == "consilience"


def foreign_rows(part: Any) -> tuple[str, int] | None:
    """Return the attribute by which an estimator of another package keeps samples, and their number."""
    if is_ours(part) or not isinstance(part, BaseEstimator):
        return None
    names = [*ROW_ATTRIBUTES, *(["components_"] if type(part).__name__ == "Nystroem" else [])]
    for name in names:
        rows = vars(part).get(name)
        shape: Any = getattr(getattr(rows, "data", None) if "tree" in name else rows, "shape", ())
        if len(shape) and shape[0]:
            return name, int(shape[0])
    return None


# -- how many
def stored_samples(model: Any) -> dict[str, int]:
    """Return how many training samples a fitted model holds, by view.

    Kernel machines predict by comparing new samples with training samples, so they keep them: all of them, the support
    vectors, or the landmarks of Nyström features. Positions in a Gram matrix are not samples. Running means of fewer
    than 5 samples of a stream count too, because they describe these samples.

    Parameters
    ----------
    model : estimator
        A fitted estimator, or anything that contains some.

    Returns
    -------
    dict of int
        Number of samples of each view that has some; empty for a model without training samples.

    Examples
    --------
    >>> import numpy as np
    >>> import consilience as cs
    >>> from consilience.io import stored_samples
    >>> X, y = cs.Views(a=np.eye(6), b=np.eye(6)), [0, 1, 0, 1, 0, 1]
    >>> stored_samples(cs.CoRegularizedRidgeClassifier().fit(X, y))
    {'a': 6, 'b': 6}
    >>> stored_samples(cs.OnlinePerceptron().fit(X, y))
    {}
    """
    found: dict[str, int] = {}
    for part, views in walk(model):
        for name, n in _held_by(part, views).items():
            found[name] = max(n, found.get(name, 0))
    return {name: n for name, n in found.items() if n}


def _held_by(part: Any, views: tuple[str, ...]) -> dict[str, int]:
    """Return how many samples of each view one part of a model holds itself."""
    if isinstance(part, Nystroem):
        indices = vars(part).get("landmark_indices_", {})  # empty where weights of columns stand for samples
        of = vars(part).get("_view_of", {})  # kernels of one view have the same landmarks
        return {of.get(name, name): len(own) for name, own in indices.items() if _has_values(part._landmarks[name])}
    if isinstance(part, Support):
        return _added([_present(X) for X in part.parts])
    if isinstance(part, LinkMachine):
        return dict.fromkeys(part.columns.offsets, sum(change.shape[0] for change in part.changes))
    if isinstance(part, (PairMachine, FeatureMachine)):  # pairs of samples and outputs, or differences of features
        return dict.fromkeys(views or ("",), len(part.pairs if isinstance(part, PairMachine) else part.steps))
    if isinstance(part, RunningStep) and "_count" in vars(part):
        n = int(max(part._rows[0], part._count.max(initial=0)))
        return dict.fromkeys(views or ("",), n * (n < LEAST_SAMPLES))
    if isinstance(part, Centered):
        block = part.reference
        return {} if block is None or not _has_values(block) else dict.fromkeys(views or ("",), len(block))
    if is_ours(part):
        X = vars(part).get("X_fit_") if hasattr(part, "__dict__") else None
        return _present(X) if isinstance(X, Views) else {}
    rows = foreign_rows(part)
    return {} if rows is None else dict.fromkeys(views or ("",), rows[1])


def _has_values(block: Block) -> bool:
    return not isinstance(block, Gram) or block.values is not None


def _present(X: Views) -> dict[str, int]:
    return {name: int(X.present(name).sum()) for name in X.names if _has_values(X.block(name))}


def _added(counts: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(part.get(name, 0) for part in counts) for part in counts for name in part}


def stored_text(held: Mapping[str, int]) -> str:
    """Return numbers of samples by view in words, such as "312 training samples of the views 'rna', 'protein'"."""
    if not held:
        return "0 training samples"
    if len(set(held.values())) > 1:
        return ", ".join(f"{n} training samples of the view '{name}'" for name, n in held.items())
    n = next(iter(held.values()))
    where = f" of the view{'s' * (len(held) > 1)} {_blocks.quoted(held)}" if any(held) else ""
    return f"{n} training sample{'s' * (n != 1)}{where}"
