"""Views of a stream that `PerView` prepares: chunks, single samples, views that come late, refused chunks."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._backend import check_on_host
from . import _blocks, _reading
from ._blocks import Block
from ._columns import read_row, rows_in_order
from ._construction import is_mapping
from .container import Views
from .recipes import naming_place
from .running import RunningImputer, RunningSteps
from .validation import _as_before, _read, read_known, remember

_ONE = np.ones(1, dtype=bool)
_STATISTICS = ("_count", "_origin", "_mean", "_squares", "_lost")  # of steps, by column


# -- chunks
def learn_chunk(prepare: Any, X: Any) -> Views:
    """Learn samples in order; return each view transformed by the rows up to each one. A refused chunk changes nothing.

    `prepare` is a `PerView`: it names the steps of a view that is new, and joins the transformed views.
    """
    fresh = not prepare._in_stream()
    X = _read_chunk(prepare, X, fresh)
    before = preparation_snapshot(prepare)
    known = {} if fresh else prepare.transformers_
    try:
        if fresh:
            prepare._known, prepare._categories, prepare.n_samples_seen_ = {}, {}, 0
        remember(prepare, X)
        prepare.transformers_, blocks, names = _run(prepare, X, known, learn=True)
        prepare.n_samples_seen_ += len(X)
        # "impute" fills missing columns too, row by row: means of a whole chunk would depend on the chunks
        steps = {name: own for name, own in prepare.transformers_.items() if isinstance(own, RunningSteps)}
        imputed = {name: own for name, own in steps.items() if isinstance(own.steps[0], RunningImputer)}
        prepare._column_means = {name: np.full(own.width, np.nan) for name, own in imputed.items()}
        return prepare._as_views(X, blocks, names)
    except BaseException:
        restore_preparation(prepare, before)
        raise


def preparation_snapshot(prepare: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `restore_preparation` needs to undo what a `PerView` learns after this call."""
    known = vars(prepare).get("transformers_", {})
    return dict(vars(prepare)), {name: own.snapshot() for name, own in known.items() if isinstance(own, RunningSteps)}


def restore_preparation(prepare: Any, before: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Set a `PerView` back to a snapshot."""
    fitted, states = before
    vars(prepare).clear()
    vars(prepare).update(fitted)
    for name, state in states.items():
        prepare.transformers_[name].restore(state)


def transform_chunk(prepare: Any, X: Any) -> Views:
    """Return samples, each transformed as if it came next in the stream; nothing is stored."""
    X = _read_chunk(prepare, X, fresh=False)
    _, blocks, names = _run(prepare, X, prepare.transformers_, learn=False)
    return prepare._as_views(X, blocks, names)


def _read_chunk(prepare: Any, X: Any, fresh: bool) -> Views:
    """Read the next samples: views and columns by name, missing views where not given; new ones may appear."""
    X = tokens_as_objects(prepare, X)
    X = _read(prepare, X) if fresh else read_known(prepare, X)
    check_on_host("PerView in a stream", *(X.block(name) for name in X.names))
    if fresh:
        return X
    X = _as_before(prepare, X)
    known = prepare.view_names_in_
    return X.align((*known, *(name for name in X.names if name not in known)))


def tokens_as_objects(prepare: Any, X: Any) -> Any:
    """Return data with lists of ids as objects where a view hashes them: lists of numbers would become a table."""
    if isinstance(X, Views) or not is_mapping(X):
        return X
    lists = {name: own for name, own in X.items() if isinstance(own, (list, tuple)) and prepare._hashes(name)}
    return {**X, **{name: _reading.objects_of(own) for name, own in lists.items()}}


def _run(
    prepare: Any, X: Views, known: Mapping[str, Any], learn: bool
) -> tuple[dict[str, Any], dict[str, Block], dict[str, Any]]:
    """Return the steps of each view, with those of new views, the transformed blocks, and the names of columns."""
    every, blocks, names = dict(known), {}, {}
    for name in X.names:
        present = np.ascontiguousarray(X.present(name))
        if name not in every and present.any():
            every[name] = _new_steps(prepare, X, name)
        own = every.get(name)
        if isinstance(own, RunningSteps) and present.any():
            check_infinite(X, name)
            with naming_place(name, X):
                blocks[name] = own.run(own.read(X.block(name), present), present, learn)
            names[name] = own.names_out(X.feature_names.get(name))
        elif own == "passthrough":
            blocks[name], names[name] = X.block(name), X.feature_names.get(name)
        elif own != "drop":
            blocks[name] = None
    return {name: every[name] for name in X.names if name in every}, blocks, names


def _new_steps(prepare: Any, X: Views, name: str) -> Any:
    """Return "passthrough", "drop" or the steps of a view whose first row has come."""
    given = prepare._steps_of(name, X)
    if isinstance(given, str):
        return given
    steps = RunningSteps(given, name)
    steps.begin(X.block(name))
    return steps


def check_infinite(X: Views, name: str) -> None:
    """Refuse infinite values; NaN is a missing value."""
    from ._running_steps import count_infinite  # numba loads at the first use

    block = X.block(name)
    values = block.data if sp.issparse(block) else block
    if X.kind(name) not in ("dense", "sparse") or not count_infinite(values.ravel()):
        return
    place = np.argwhere(np.isinf(values))[0]
    if sp.issparse(block):
        place = np.searchsorted(block.indptr, place[0], side="right") - 1, block.indices[place[0]]
    row, column = int(place[0]), int(place[1])
    names = X.feature_names.get(name)
    where = f"row {row}" if X.sample_names is None else f"sample '{X.sample_names[row]}'"
    raise ValueError(
        f"View '{name}' contains infinity in {where}, column {column if names is None else repr(names[column])}. "
        "Replace it by a number, or by NaN, which the recipe 'impute' fills."
    )


# -- single samples
def learn_row(prepare: Any, x: Mapping[str, Any]) -> dict[str, Any]:
    """Learn one sample; return its transformed rows by view."""
    rows = _read_row(prepare, x)
    if rows is None:  # a new view, or a row that must be validated
        return _as_dict(learn_chunk(prepare, _one_row(prepare, x)))
    prepare.n_samples_seen_ += 1
    return _run_row(prepare, rows, learn=True)


def learn_row_undoable(prepare: Any, x: Mapping[str, Any]) -> tuple[dict[str, Any] | None, Callable[[], None]]:
    """Learn one sample; return its rows, None if they must be validated, and a function that undoes the learning.

    Only the columns of the row are stored for it, so that wide sparse views cost no more than their entries.
    """
    rows, before = _read_row(prepare, x), []
    for name, row in (rows or {}).items():
        own, where = prepare.transformers_[name], row.indices if sp.issparse(row) else slice(None)
        before += [(step, where, _statistics(step, where)) for step in own.steps[own.n_fixed :]]

    def undo() -> None:
        for step, where, values in before:
            _restore(step, where, values)
        prepare.n_samples_seen_ -= rows is not None

    if rows is None:
        return None, undo
    prepare.n_samples_seen_ += 1
    return _run_row(prepare, rows, learn=True), undo


def _statistics(step: Any, where: Any) -> dict[str, Any]:
    """Return copies of what a step knows about some columns; features of kernels learn nothing after the first row."""
    state = vars(step)
    kept = {name: state[name][where].copy() for name in _STATISTICS if name in state}
    if "_rows" in state:
        kept["_rows"] = state["_rows"].copy()
    return {**kept, "n_imputed_": step.n_imputed_} if isinstance(step, RunningImputer) else kept


def _restore(step: Any, where: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name == "n_imputed_":
            step.n_imputed_ = value
        else:
            getattr(step, name)[where if name in _STATISTICS else slice(None)] = value


def transform_row(prepare: Any, x: Mapping[str, Any]) -> dict[str, Any]:
    """Return the transformed rows of one sample as if it came next; nothing is stored."""
    check_is_fitted(prepare, "transformers_")
    rows = _read_row(prepare, x)
    if rows is None:
        return _as_dict(prepare.transform(_one_row(prepare, x)))
    return _run_row(prepare, rows, learn=False)


def _read_row(prepare: Any, x: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the rows of one sample after the first steps, which learn nothing; None if they must be validated."""
    if not prepare._in_stream():
        return None
    rows: dict[str, Any] = {}
    for name, row in rows_in_order(prepare._known, x).items():
        own = prepare.transformers_.get(name)
        if isinstance(own, RunningSteps) and own.in_order:
            data = None if row is None else own.read_one(row)
        elif own == "passthrough" or own == "drop":
            data = _unchanged(row, *prepare._known[name][:2]) if own == "passthrough" else None
        else:
            return None
        if data is NotImplemented:
            return None
        if data is not None:
            rows[name] = _fixed(own, data) if isinstance(own, RunningSteps) and own.n_fixed else data
    return rows or None


def _unchanged(row: Any, kind: str, width: int) -> Any:
    """Return the row of a view that passes through; `NotImplemented` if it must be validated."""
    if row is None or kind == "objects":
        return row
    if sp.issparse(row) and row.format == "csr" and row.shape == (1, width):
        return row
    plain = type(row) is np.ndarray and row.dtype in (np.float64, np.float32) and row.shape == (width,)
    return row if plain and row[0] == row[0] else NotImplemented


def _fixed(steps: RunningSteps, data: Any) -> Any:
    """Return a row after the first steps, which learn nothing."""
    with _blocks.naming(steps.view):
        return steps.run(data, _ONE, False, 0, steps.n_fixed)


def _run_row(prepare: Any, rows: dict[str, Any], learn: bool) -> dict[str, Any]:
    """Return rows after the other steps, which cannot refuse them: all views are learned, or none is."""
    for name, row in rows.items():
        own = prepare.transformers_[name]
        if isinstance(own, RunningSteps):
            row = own.run(row, _ONE, learn, own.n_fixed) if own.n_fixed < len(own.steps) else row
            rows[name] = row if sp.issparse(row) else row[0]
    return rows


def _one_row(prepare: Any, x: Mapping[str, Any]) -> Views:
    """Return one sample, given as a dict of rows by view, as Views."""
    rows: dict[str, Any] = {}
    for name, row in x.items():
        if row is None:
            continue
        if prepare._hashes(name) and not sp.issparse(row):
            row = row.to_numpy() if hasattr(row, "to_numpy") else row
            if not (hasattr(row, "ndim") and row.dtype.kind == "f"):
                # lists and arrays of ids have any length
                rows[name] = _reading.objects_of([row.tolist() if hasattr(row, "ndim") else row])
                continue
        rows[name] = read_row(name, row)
    if not rows:
        raise ValueError(f"The sample has no view; it is {dict(x)!r}. Give at least one row that is not None.")
    return Views(rows)


def _as_dict(X: Views) -> dict[str, Any]:
    """Return the views of one sample that are present."""
    blocks = {name: X.block(name) for name in X.names if X.block(name) is not None and X.present(name)[0]}
    return {name: block if sp.issparse(block) else block[0] for name, block in blocks.items()}
