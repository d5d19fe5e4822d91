"""Sparse matrices with broken parts, and operations on Views next to a twin of plain rows."""

import itertools

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import consilience as cs
from consilience import Views, as_views
from consilience.kernels import RBF, Linear
from fuzzing.properties import Refused, attempt, describe
from strategies import chance, draw_mask, draw_strings, pick

# -- sparse matrices
SPARSE_ACTS = ("as_views", "fit", "predict", "partial_fit", "learn_one", "fusion")


def fuzz_sparse(rng):
    """Give a sparse matrix whose parts may be broken: refused by name, or read like the dense matrix it stands for."""
    act = pick(rng, SPARSE_ACTS)
    n, d = 1 if act == "learn_one" else int(rng.integers(2, 12)), int(rng.integers(1, 6))
    dense = np.round(rng.normal(size=(n, d)) * 2) * (rng.random((n, d)) > 0.4)
    matrix = pick(rng, [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])(dense)
    note, sound = break_matrix(rng, matrix)
    expected = twin_of(matrix) if sound else None
    y = np.arange(n) % 2

    describe(lambda: f"{note} ({act} of {matrix.format} {matrix.dtype} {n}x{d})")
    got, sentence = attempt(lambda: sparse_act(act, matrix, dense, y))
    if sentence:
        assert not sound, f"a sound matrix is refused ({sentence})"
        assert "'s'" in sentence or "'view0'" in sentence or "1d" in sentence, f"{sentence!r} names no view"
        raise Refused(sentence)
    assert sound, "a broken matrix is taken"
    wanted = sparse_act(act, expected, dense, y)
    single = matrix.dtype == np.float32
    same = np.allclose(got, wanted, rtol=1e-3 if single else 1e-6, atol=1e-4 if single else 1e-9)
    assert same, f"not as the dense matrix: {got.tolist()} and {wanted.tolist()}"


def warm_up():
    """Use a matrix once in every place."""
    for act, form in itertools.product(SPARSE_ACTS, (np.asarray, sp.csr_array)):
        dense = np.eye(1) if act == "learn_one" else np.eye(4)
        sparse_act(act, form(dense), dense, np.arange(len(dense)) % 2)


def sparse_act(act, given, dense, y):
    """Use a matrix as the view 's' in one of the places that take data, and return numbers."""
    if act == "as_views":
        block = as_views({"s": given})["s"]
        return block.toarray() if sp.issparse(block) else block
    if act in ("fit", "fusion", "predict"):
        model = cs.CoRegularizedRidge(Linear() if act == "fit" else RBF(0.5), alpha=0.1)
        model = cs.EarlyFusion(Ridge(solver="cholesky", fit_intercept=False)) if act == "fusion" else model
        train, new = (dense, given) if act == "predict" else (given, dense)
        return model.fit({"s": train}, y * 1.0).predict({"s": new})
    model = cs.OnlinePerceptron()
    if act == "partial_fit":
        return model.partial_fit({"s": given}, y, classes=[0, 1]).decision_function({"s": dense})
    model.partial_fit({"s": np.ones((2, dense.shape[1]))}, [0, 1], classes=[0, 1])
    for label in (1, 0, 1):
        model.learn_one({"s": given if sp.issparse(given) else given[0]}, label)
    return model.decision_function({"s": dense})


def break_matrix(rng, matrix):
    """Change the parts of a sparse matrix in place; return what was done, and whether it still stands for a matrix."""
    style = pick(rng, ["none", "unsorted", "repeated", "int64", "far", "negative", "decreasing", "lengths", "start",
                       "end", "dtype", "read-only", "stale"])  # fmt: skip
    size = len(matrix.data)
    if style == "none" or size == 0:
        return "as it is", True
    if style == "dtype":
        matrix.data = matrix.data.astype(pick(rng, ["f4", "i4", "i8", "f8"]))
        return f"dtype {matrix.dtype}", True
    if matrix.format == "coo":
        return break_coordinates(rng, matrix, style)
    if style in ("unsorted", "stale"):
        matrix.has_canonical_format  # the flags are computed before, and wrong after, where they are stale
        for i in range(len(matrix.indptr) - 1):
            part = slice(matrix.indptr[i], matrix.indptr[i + 1])
            matrix.indices[part], matrix.data[part] = matrix.indices[part][::-1].copy(), matrix.data[part][::-1].copy()
        if style == "unsorted":
            matrix.has_sorted_indices = matrix.has_canonical_format = False
    elif style == "repeated":
        matrix.indices, matrix.data = np.repeat(matrix.indices, 2), np.repeat(matrix.data, 2)
        matrix.indptr = matrix.indptr * 2
        for flag in ("_has_canonical_format", "_has_sorted_indices"):
            matrix.__dict__.pop(flag, None)
    elif style == "int64":
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    elif style == "read-only":
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
    elif style in ("far", "negative"):
        far = pick(rng, [matrix.shape[1] + matrix.shape[0], 10**4, 2**31 - 1])
        matrix.indices[rng.integers(size)] = far if style == "far" else -far
    elif style == "decreasing":
        place = rng.integers(1, len(matrix.indptr) - 1) if len(matrix.indptr) > 2 else 1
        matrix.indptr[place] = pick(rng, [-1, size + 5, 10**6])
    elif style == "lengths":
        matrix.indices = matrix.indices[: size // 2]
    elif style == "start":
        matrix.indptr[0] = pick(rng, [1, -3]) if size > 1 else -3
    else:
        matrix.indptr[-1] = size + int(pick(rng, [1, 1000, 10**8]))
    return style, style in ("unsorted", "stale", "repeated", "int64", "read-only")


def break_coordinates(rng, matrix, style):
    """Change the coordinates of a COO matrix."""
    row, column = (np.array(part) for part in matrix.coords)
    if style in ("far", "negative", "start"):
        place = rng.integers(len(row))
        (row if chance(rng, 0.5) else column)[place] = pick(rng, [100, 10**6]) * (1 if style == "far" else -1)
        matrix.coords = (row, column)
        return f"coordinate {style}", False
    if style in ("lengths", "end"):
        matrix.coords = (row[:-1], column)
        return "coordinates of other length", False
    order = np.repeat(rng.permutation(len(row)), 2 if style == "repeated" else 1)
    matrix.coords, matrix.data = (row[order], column[order]), matrix.data[order]
    matrix.has_canonical_format = False
    return f"coordinates {style}", True


def twin_of(matrix):
    """Return the dense matrix that a sparse one stands for, entry by entry."""
    if matrix.format == "coo":
        rows, columns = matrix.coords
    else:
        rows, columns = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr)), matrix.indices
        rows, columns = (rows, columns) if matrix.format == "csr" else (columns, rows)
    dense = np.zeros(matrix.shape)
    for i, j, value in zip(rows, columns, matrix.data, strict=True):
        dense[i, j] += value
    return dense


# -- views and their twin
def fuzz_views(rng):
    """Apply random operations to Views and to a dict of plain rows: both hold the same."""
    n = int(rng.integers(1, 9))
    mask = draw_mask(rng, n, 3, share=0.6, hostile=False)
    there = np.ones((n, 3), dtype=bool) if mask is None else mask
    raw = {"a": np.round(rng.normal(size=(n, int(rng.integers(1, 4)))) * 2)}
    raw |= {"s": np.round(rng.normal(size=(n, 2))) * (rng.random((n, 2)) > 0.5), "t": draw_strings(rng, n)}
    rows = {v: part.tolist() if v != "t" else part for v, part in raw.items()}
    twin = {v: [rows[v][i] if there[i, j] else None for i in range(n)] for j, v in enumerate(raw)}
    given = {**raw, "s": pick(rng, [sp.csr_array, sp.csc_array, sp.coo_array])(raw["s"])}
    form = pick(rng, ["mask", "dict", "marked"])
    if form == "dict" and mask is not None:
        mask = {v: mask[:, j] for j, v in enumerate(raw)}
    elif form == "marked" and mask is not None:
        given, mask = {**given, "a": np.where(there[:, :1], raw["a"], np.nan), "t": twin["t"]}, {"s": mask[:, 1]}
    X = Views(given, mask=mask)
    trail = [f"{n} samples", f"mask {form}" if mask is not None else "no mask"]
    describe(lambda: ", ".join(trail))
    for _ in range(rng.integers(1, 5)):
        X, twin, step = one_step(rng, X, twin)
        trail.append(step)
        check_twin(X, twin)


def one_step(rng, X, twin):
    """Apply one random operation to Views and to the twin."""
    n = len(X)
    step = pick(rng, ["rows", "rows", "mask", "slice", "select", "align", "concat", "side", "rename", "again", "each"])

    def taken(rows):
        return {v: [part[i] for i in rows] for v, part in twin.items()}

    if step in ("rows", "mask", "slice"):
        rows = rng.integers(-n, n, size=rng.integers(1, 6))
        key = rows.tolist() if chance(rng, 0.5) else rows
        if step == "mask":
            key = rng.random(n) > 0.3
            key[rng.integers(n)] = True
            rows = np.flatnonzero(key)
        if step == "slice":
            key = slice(int(rng.integers(n)), None, pick(rng, [None, 1, 2]))
            rows = np.arange(n)[key]
        return X[key], taken(rows), f"rows {np.asarray(rows).tolist()}"
    if step == "select":
        kept = [v for v in X.names if chance(rng, 0.8)]
        if kept and all(any(twin[v][i] is not None for v in kept) for i in range(n)):
            order = [kept[i] for i in rng.permutation(len(kept))]
            return X[order], {v: twin[v] for v in order}, f"select {order}"
    if step == "align":
        order = [[*X.names, "z"][i] for i in rng.permutation(len(X.names) + 1)] if "z" not in X.names else list(X.names)
        return X.align(order), {v: twin.get(v, [None] * n) for v in order}, f"align {order}"
    if step == "concat":
        cut, whole = int(rng.integers(0, n + 1)), chance(rng, 0.5)
        parts = [X, X[:cut]] if whole else [X[:cut], X[cut:]]
        joined = Views.concat([part for part in parts if len(part)])
        return joined, taken([*range(n), *range(cut)] if whole else range(n)), f"concat at {cut}"
    if step == "side" and "w" not in X.names:
        other = rng.normal(size=(n, 1))
        return X | Views(w=other), {**twin, "w": other.tolist()}, "side by side"
    if step == "rename" and "q" not in X.names:
        old = X.names[0]
        return X.renamed({old: "q"}), {("q" if v == old else v): part for v, part in twin.items()}, "rename"
    if step == "again":
        return Views(X), twin, "Views of Views"
    if step == "each":
        return Views.concat(list(X)), twin, "row by row"
    return X, twin, "nothing"


def check_twin(X, twin):
    """Check that Views hold what the twin holds: names, presence, values."""
    n = len(next(iter(twin.values())))
    assert X.names == tuple(twin), f"names {X.names} and {tuple(twin)}"
    assert len(X) == n == X.shape[0], f"{len(X)} samples, not {n}"
    complete = all(x is not None for part in twin.values() for x in part)
    assert (X.mask is None) == complete, f"mask {X.mask}"
    for v, part in twin.items():
        there = [x is not None for x in part]
        assert X.present(v).tolist() == there, f"view {v} present {X.present(v).tolist()}, not {there}"
        block = X[v]
        if block is None:
            assert not any(there), f"view {v} is missing"
            continue
        rows = (block.toarray() if sp.issparse(block) else block).tolist()
        wrong = [i for i in range(n) if there[i] and rows[i] != part[i]]
        assert not wrong, f"view {v} row {wrong[0]} is {rows[wrong[0]]}, not {part[wrong[0]]}"
        filled = sp.issparse(block) and any(any(rows[i]) for i in range(n) if not there[i])
        assert not filled, f"missing rows of {v} hold data"
    assert X[list(range(n))] == X, "not equal to itself"
