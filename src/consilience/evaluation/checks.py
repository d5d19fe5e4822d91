"""Checks of the contracts that every multi-view estimator keeps: `check_multiview_estimator`.

Each check is a function whose docstring is the statement that it checks.
"""

import pickle  # nosec B403 # for what was pickled a moment before
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score

from ..io.model_files import load, save
from ..views.container import Views

__all__ = ["check_multiview_estimator", "multiview_checks"]

Check = Callable[[Any], None]


def check_multiview_estimator(estimator: Any) -> None:
    """Check that an estimator keeps the contracts of multi-view learning.

    Parameters
    ----------
    estimator : estimator
        An unfitted classifier or regressor. For contracts on a single array use scikit-learn's ``check_estimator``.

    Raises
    ------
    AssertionError
        If a contract does not hold. The message lists all such contracts and the reasons.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from consilience import LateFusion, check_multiview_estimator
    >>> check_multiview_estimator(LateFusion(Ridge()))
    """
    broken = []
    for check in multiview_checks(estimator):
        try:
            check(estimator)
        except Exception as error:  # whatever an estimator raises, the other checks run
            broken.append(f"- {check.__doc__} {type(error).__name__}: {error}")
    if broken:
        raise AssertionError(f"{type(estimator).__name__} breaks {len(broken)} contracts:\n" + "\n".join(broken))


def multiview_checks(estimator: Any) -> Iterator[Check]:
    """Yield the checks that apply to an estimator, so that you can write one test per check.

    Parameters
    ----------
    estimator : estimator
        The estimator.

    Yields
    ------
    callable
        Function of the estimator that raises an error if its docstring does not hold.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from consilience import LateFusion
    >>> from consilience.evaluation.checks import multiview_checks
    >>> next(multiview_checks(LateFusion(Ridge()))).__doc__
    'One view equals the plain array.'
    """
    yield from _FOR_ALL
    if is_classifier(estimator):
        yield from _FOR_CLASSIFIERS
    if hasattr(estimator, "learn_one"):
        yield from _FOR_ONLINE


# -- data and comparisons of predictions
def _data(estimator: Any, n: int = 48) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    code = np.arange(n) % 3  # three classes of equal size
    A = rng.normal(size=(n, 3)) + code[:, None]
    B = rng.normal(size=(n, 4)) - code[:, None] * np.array([1.0, 0, 2, 0])
    y = code if is_classifier(estimator) else A[:, 0] - B[:, 2] + 0.1 * rng.normal(size=n)
    return {"a": A, "b": B}, y


def _outputs(model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X))


def _same(left: np.ndarray, right: np.ndarray, what: str = "the predictions differ") -> None:
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6, err_msg=what)


def _fit(estimator: Any, X: Any, y: Any, **params: Any) -> Any:
    return clone(estimator).set_params(**params).fit(X, y)


def _fit_outputs(estimator: Any, X: Any, y: Any, **params: Any) -> np.ndarray:
    return _outputs(_fit(estimator, X, y, **params), X)


def _check_refused(model: Any, X: Any, word: str) -> None:
    """Check that prediction raises a ValueError whose message contains a word."""
    try:
        model.predict(X)
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError("prediction accepted the view without an error")
    assert word in message, f"the error message does not name the view: {message}"


def _backwards(array: np.ndarray) -> sp.csr_array:
    """Return a sparse matrix whose rows are stored from right to left."""
    n, width = array.shape
    columns = np.tile(np.arange(width)[::-1], n)
    return sp.csr_array((array[:, ::-1].ravel(), columns, np.arange(0, n * width + 1, width)), shape=(n, width))


def _with_missing(data: dict[str, np.ndarray]) -> Views:
    A, B = data["a"].copy(), data["b"].copy()
    A[::5] = np.nan
    B[1::4] = np.nan
    B[::5] = data["b"][::5]  # no sample may lose both views
    return Views(a=A, b=B)


# -- all estimators
def check_one_view_is_plain(estimator: Any) -> None:
    """One view equals the plain array."""
    data, y = _data(estimator)
    plain = _fit_outputs(estimator, data["a"], y)
    for form in (Views(only=data["a"]), {"only": data["a"]}, [data["a"]]):
        _same(_fit_outputs(estimator, form, y), plain)


def check_forms_agree(estimator: Any) -> None:
    """A dict, a list, a data frame and a wide array of the same views give the same predictions."""
    data, y = _data(estimator)
    expected = _fit_outputs(estimator, data, y)
    listed = list(data.values())
    _same(_fit_outputs(estimator, listed, y), expected, "a list differs from a dict")
    _same(_fit_outputs(estimator, Views(data), y), expected, "Views differ from a dict")
    if "views" not in estimator.get_params():
        return
    wide = np.hstack(listed)
    division = {"a": slice(0, 3), "b": [3, 4, 5, 6]}
    _same(_fit_outputs(estimator, wide, y, views=division), expected, "a wide array differs from a dict")
    try:
        import pandas as pd
    except ImportError:
        return
    frame = pd.DataFrame(wide, columns=[f"a__{j}" for j in range(3)] + [f"b__{j}" for j in range(4)])
    _same(_fit_outputs(estimator, frame, y, views="prefix"), expected, "a frame differs from a dict")


def check_view_order(estimator: Any) -> None:
    """Permuting the views permutes the weights and keeps the predictions."""
    data, y = _data(estimator)
    model = _fit(estimator, data, y)
    permuted = dict(reversed(data.items()))
    other = _fit(estimator, permuted, y)
    _same(_outputs(other, permuted), _outputs(model, data))
    _same(_outputs(model, permuted), _outputs(model, data), "prediction does not match views by name")
    if hasattr(model, "view_weights_"):
        _same(np.asarray(other.view_weights_)[..., ::-1], model.view_weights_, "the weights do not follow the views")


def check_sparse_is_dense(estimator: Any) -> None:
    """A sparse view equals the same view dense."""
    if not estimator.__sklearn_tags__().input_tags.sparse:
        return
    data, y = _data(estimator)
    mixed = {"a": sp.csr_array(data["a"]), "b": data["b"]}
    _same(_fit_outputs(estimator, mixed, y), _fit_outputs(estimator, data, y))


def check_always_missing(estimator: Any) -> None:
    """A view that is missing in every sample equals its removal."""
    data, y = _data(estimator)
    with_empty = {**data, "empty": np.full((len(y), 2), np.nan)}
    model = _fit(estimator, with_empty, y)
    expected = _fit_outputs(estimator, data, y)
    _same(_outputs(model, with_empty), expected)
    _same(_outputs(model, data), expected, "prediction needs the missing view")
    with_new = {**data, "empty": np.ones((len(y), 2))}
    _same(_outputs(model, with_new), expected, "a view that was missing at fit changes predictions")


def check_missing_rows(estimator: Any) -> None:
    """Samples with missing views are accepted, and all predictions are finite."""
    data, y = _data(estimator)
    X = _with_missing(data)
    model = _fit(estimator, X, y)
    assert np.isfinite(_outputs(model, X)).all(), "a prediction is not finite"
    _same(_outputs(model, X[:7]), _outputs(model, X)[:7], "predictions depend on the other samples")


def check_one_view_at_prediction(estimator: Any) -> None:
    """A view that is not given at prediction is missing."""
    data, y = _data(estimator)
    model = _fit(estimator, _with_missing(data), y)
    given = {"b": data["b"]}
    blank = {"a": np.full_like(data["a"], np.nan), "b": data["b"]}
    _same(_outputs(model, given), _outputs(model, blank))


def check_inputs_unchanged(estimator: Any) -> None:
    """Fit and prediction do not change their inputs."""
    data, y = _data(estimator)
    X, kept, labels = _with_missing(data), _with_missing(data), y.copy()
    before = repr(estimator.get_params())
    model = _fit(estimator, X, y)
    _outputs(model, X)
    assert kept == X, "the views were changed"
    if estimator.__sklearn_tags__().input_tags.sparse:
        backwards = _backwards(data["a"])
        order = backwards.indices.copy()
        _fit_outputs(estimator, {"a": backwards, "b": data["b"]}, y)
        assert np.array_equal(backwards.indices, order), "the indices of a sparse matrix were sorted in place"
    assert np.array_equal(y, labels), "the targets were changed"
    assert repr(estimator.get_params()) == before, "fit changed the parameters"


def check_cross_validation(estimator: Any) -> None:
    """The cross-validation of scikit-learn splits views by samples."""
    data, y = _data(estimator)
    scores = cross_val_score(estimator, Views(data), y, cv=3, error_score="raise")
    assert scores.shape == (3,), f"three folds give scores of shape {scores.shape}"
    assert np.isfinite(scores).all(), "a score is not finite"


def check_pickle(estimator: Any) -> None:
    """Pickle gives the same predictions."""
    data, y = _data(estimator)
    model = _fit(estimator, data, y)
    again = pickle.loads(pickle.dumps(model))  # nosec B301 # its own
    _same(_outputs(again, data), _outputs(model, data))


def check_save_and_load(estimator: Any) -> None:
    """Save and load gives the same predictions."""
    if find_spec("skops") is None:  # model files need it
        return
    data, y = _data(estimator)
    X = _with_missing(data)
    if estimator.__sklearn_tags__().input_tags.sparse:
        X = Views({"a": sp.csr_matrix(data["a"]), "b": X["b"]})
    model = _fit(estimator, X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cons"
        save(model, path)
        _same(_outputs(load(path), X), _outputs(model, X))


def check_unknown_view(estimator: Any) -> None:
    """A view that fit did not have raises an error that names the view."""
    data, y = _data(estimator)
    _check_refused(_fit(estimator, data, y), {**data, "stranger": data["a"]}, "stranger")


def check_wrong_columns(estimator: Any) -> None:
    """A view with other columns than at fit raises an error that names the view."""
    data, y = _data(estimator)
    _check_refused(_fit(estimator, data, y), {"a": data["a"], "b": data["b"][:, :2]}, "'b'")


def check_view_decision_function(estimator: Any) -> None:
    """The decision function by view has one column per view, and NaN exactly where the view is missing."""
    if not hasattr(estimator, "view_decision_function"):
        return
    data, y = _data(estimator)
    X = _with_missing(data)
    own = _fit(estimator, X, y).view_decision_function(X)
    assert own.shape[:2] == (len(y), 2), f"the shape is {own.shape}"
    missing = np.isnan(own).reshape(len(y), 2, -1)
    assert X.mask is not None, "the data have missing views"
    assert np.array_equal(missing.all(axis=2), ~X.mask), "NaN are not exactly where views are missing"
    assert np.array_equal(missing.any(axis=2), missing.all(axis=2)), "a present view gives NaN"


def check_certificate(estimator: Any) -> None:
    """The certificate prints as a sentence that ends with a period."""
    if not hasattr(estimator, "certificate"):
        return
    data, y = _data(estimator)
    text = str(_fit(estimator, data, y).certificate())
    assert text.endswith("."), f"it reads {text!r}"


# -- classifiers
def check_any_labels(estimator: Any) -> None:
    """Strings, negative numbers and booleans are valid class labels."""
    data, y = _data(estimator)
    expected = _fit(estimator, data, y).predict(data)
    for names in (np.array(["ant", "bee", "cow"]), np.array([-1, 0, 7]), np.array(["ant", "bee", "cow"], dtype=object)):
        assert np.array_equal(_fit(estimator, data, names[y]).predict(data), names[expected]), f"labels {names} differ"
    assert set(_fit(estimator, data, y == 1).predict(data)) <= {True, False}, "predictions are not booleans"


def check_unlabeled(estimator: Any) -> None:
    """NaN, None and the value of `unlabeled` mark unlabeled samples."""
    data, y = _data(estimator)
    as_nan = y.astype(float)
    as_nan[::6] = np.nan
    as_none = y.astype(object)
    as_none[::6] = None
    left = _fit_outputs(estimator, data, as_nan)
    _same(left, _fit_outputs(estimator, data, as_none))
    if "unlabeled" in estimator.get_params():
        marked = np.where(np.arange(len(y)) % 6 == 0, -1, y)
        _same(left, _fit_outputs(estimator, data, marked, unlabeled=-1))


# -- online estimators
def check_chunks(estimator: Any) -> None:
    """Any chunking of the same samples gives the same state."""
    data, known = _data(estimator)
    X, classes = _with_missing(data), np.unique(known) if is_classifier(estimator) else None
    y = known.astype(object)
    y[::9] = None  # online estimators skip unlabeled samples
    whole = clone(estimator).partial_fit(X, y, classes=classes)
    total = "n_mistakes_" if is_classifier(estimator) else "total_loss_"
    for size in (1, 7, 20):
        parts = clone(estimator)
        for start in range(0, len(y), size):
            parts.partial_fit(X[start : start + size], y[start : start + size], classes=classes)
        _same(_outputs(parts, X), _outputs(whole, X), f"chunks of {size} differ")
        _same(getattr(parts, total), getattr(whole, total), f"chunks of {size} give another {total}")


_FOR_ALL: tuple[Check, ...] = (
    check_one_view_is_plain, check_forms_agree, check_view_order, check_sparse_is_dense, check_always_missing,
    check_missing_rows, check_one_view_at_prediction, check_inputs_unchanged, check_cross_validation, check_pickle,
    check_save_and_load, check_unknown_view, check_wrong_columns, check_view_decision_function, check_certificate,
)  # fmt: skip
_FOR_CLASSIFIERS: tuple[Check, ...] = (check_any_labels, check_unlabeled)
_FOR_ONLINE: tuple[Check, ...] = (check_chunks,)
