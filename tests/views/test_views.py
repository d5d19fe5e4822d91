"""Views: every form of data, rows, names, masks, comparison, display, and the text of every error."""

import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience import Views, as_views
from consilience.views.container import Gram

A = np.arange(12.0).reshape(4, 3)
B = np.array([[1.0, 0], [0, 2], [3, 0], [0, 4]])
WIDE = np.hstack([A, B])
NAMES = [f"a__{j}" for j in range(3)] + [f"b__{j}" for j in range(2)]
EXPECTED = Views(a=A, b=B)

FORMS = {
    "keywords": lambda: Views(a=A, b=B),
    "dict": lambda: as_views({"a": A, "b": B}),
    "views": lambda: as_views(Views(a=A, b=B)),
    "list": lambda: as_views([A, B]).renamed({"view0": "a", "view1": "b"}),
    "tuple": lambda: as_views((A, B)).renamed({"view0": "a", "view1": "b"}),
    "nested lists": lambda: as_views([A.tolist(), B.tolist()]).renamed({"view0": "a", "view1": "b"}),
    "dict of frames": lambda: as_views({"a": pd.DataFrame(A), "b": pl.DataFrame(B)}),
    "slices": lambda: as_views(WIDE, views={"a": slice(0, 3), "b": slice(3, None)}),
    "positions": lambda: as_views(WIDE, views={"a": [0, 1, 2], "b": [-2, -1]}),
    "masks": lambda: as_views(WIDE, views={"a": np.arange(5) < 3, "b": np.arange(5) >= 3}),
    "list of slices": lambda: as_views(WIDE, views=[slice(0, 3), [3, 4]]).renamed({"view0": "a", "view1": "b"}),
    "pandas prefix": lambda: as_views(pd.DataFrame(WIDE, columns=NAMES), views="prefix"),
    "polars prefix": lambda: as_views(pl.DataFrame(WIDE, schema=NAMES), views="prefix"),
    "arrow prefix": lambda: as_views(pl.DataFrame(WIDE, schema=NAMES).to_arrow(), views="prefix"),
    "pandas names": lambda: as_views(pd.DataFrame(WIDE, columns=NAMES), views={"a": NAMES[:3], "b": NAMES[3:]}),
    "polars positions": lambda: as_views(pl.DataFrame(WIDE, schema=NAMES), views={"a": [0, 1, 2], "b": slice(3, 5)}),
    "integers": lambda: Views(a=A.astype(int), b=B.astype(np.uint8)),
    "integer frame": lambda: Views(a=pd.DataFrame(A.astype(int)), b=pd.DataFrame(B).astype("Int64")),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_views(form):
    X = FORMS[form]()
    assert X == EXPECTED
    assert X.mask is None
    assert X["a"].dtype == np.float64


@pytest.mark.parametrize(
    "kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.dok_array, sp.lil_array]
)
def test_sparse_is_kept_as_rows(kind):
    X = as_views(kind(B))
    assert X.kind("view0") == "sparse"
    assert X["view0"].format == "csr"
    assert np.array_equal(X[[2, 0]]["view0"].toarray(), B[[2, 0]])
    wide = as_views(kind(WIDE), views={"a": slice(0, 3), "b": [3, 4]})
    assert np.array_equal(wide["b"].toarray(), B)


def test_precision_is_kept_and_nothing_is_copied_without_need():
    X = Views(half=A.astype(np.float16), single=A.astype(np.float32), double=A, flags=B > 0)
    assert [X[name].dtype for name in X.names] == [np.float32, np.float32, np.float64, np.float64]
    assert Views(a=pl.DataFrame(A.astype(np.float32)))["a"].dtype == np.float32
    assert Views(a=A)["a"] is A, "data are copied without need"


def test_strings_trees_other_objects_grams_and_missing_views():
    X = Views(
        name=["anna", "otto", None, "ida"],
        word=np.array(["x", "y", "z", "w"]),
        tree=[("S", ("NP", "I")), ("S", "a"), ("S", "b"), ("S", "c")],
        tokens=[["a", "b"], ["c"], ["d"], []],
        column=pd.Series(["p", None, "q", "r"]),
        thing=[{1}, {2}, {3}, {4}],
    )
    assert [X.kind(name) for name in X.names] == ["objects"] * 6
    assert X.present("name").tolist() == [True, True, False, True]
    assert X.present("column").tolist() == [True, False, True, True]
    assert isinstance(X["word"][0], str)
    assert X["tree"][0] == ("S", ("NP", "I"))
    assert X[[3]]["tokens"][0] == []
    K = A @ A.T
    gram = Gram(K)
    assert as_views([gram, A]).kind("view0") == "gram"
    assert Views(Views(g=K, precomputed=True), precomputed=True)["g"].tolist() == K.tolist()
    assert as_views(pd.DataFrame(WIDE, columns=NAMES), views={"one": "a__1", "two": 3})["two"].shape == (4, 1)
    assert Views(a=[[np.array([1.0, 2.0])[0], 2.0], [3.0, 4.0]])["a"].shape == (2, 2)
    assert (Views(a=A) == Views(a=A).align(("a", "ghost"))) is False
    assert Views(a=A, ghost=None) == Views(a=A).align(("a", "ghost"))
    assert Views.concat([Views(a=A, ghost=None), Views(a=A)]).kind("ghost") == "missing"
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = Views(a=A) | {"b": B}


def test_sequences_of_strings_numeric_rows_and_single_columns():
    one = as_views(["anna", "otto"])
    assert one.names == ("view0",)
    assert one.kind("view0") == "objects"
    assert as_views([["anna", "otto"], ["x", "y"]]).names == ("view0", "view1")
    assert as_views([[1, 2], [3, 4]])["view0"].tolist() == [[1, 2], [3, 4]]
    X = Views(a=[[1.0, 2.0], None, [3.0, 4.0]], b=[1, 2, None])
    assert X.mask.tolist() == [[True, True], [False, True], [True, False]]
    assert Views(price=[1, 2, 3])["price"].shape == (3, 1)
    assert Views(price=pd.Series([1.5, None, 2]), other=A[:3]).present("price").tolist() == [True, False, True]


def test_frames_with_a_text_column_and_of_a_column_transformer_are_read_by_prefix():
    X = as_views(pd.DataFrame({"n__x": [1.0, 2.0], "t__text": ["a", None]}), views="prefix")
    assert X.kind("t") == "objects"
    assert X.present("t").tolist() == [True, False]
    assert X.feature_names == {"n": ("n__x",), "t": ("t__text",)}
    columns = ColumnTransformer([("a", StandardScaler(), ["p", "q", "r"]), ("b", "passthrough", ["s", "t"])])
    columns.set_output(transform="pandas")
    X = as_views(columns.fit_transform(pd.DataFrame(WIDE, columns=list("pqrst"))), views="prefix")
    assert X.names == ("a", "b")
    assert np.array_equal(X["b"], B)


def test_sparse_in_any_state_is_read_without_being_changed_and_stays_in_order():
    messy = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    messy.indices.setflags(write=False)
    X = Views(s=messy)
    assert X["s"].toarray().tolist() == [[5, 0, 1]]
    assert X["s"].has_canonical_format
    assert X["s"].indices.dtype == np.int32
    assert messy.indices.tolist() == [2, 0, 0]
    wide = sp.coo_array((np.ones(3), (np.array([0, 1, 2]), np.array([0, 1, 1]))), shape=(3, 3))
    assert Views(s=wide)["s"].indices.dtype == np.int32
    S = sp.csr_array(np.array([[1.0, 0], [0, 2.0]]))  # with room to spare
    S.data, S.indices = np.r_[S.data, np.nan], np.r_[S.indices, 0].astype(np.int32)
    assert Views(s=S).check_finite()["s"].data.tolist() == [1, 2]
    R = sp.csr_array(sp.random(40, 30, density=0.4, random_state=np.random.default_rng(0)))
    X = Views(a=R, b=np.ones((40, 1)), mask={"a": np.arange(40) % 3 > 0})
    for block in (X.block("a"), X[5:20].block("a"), X[[3, 1, 2]].block("a")):
        assert type(block)((block.data, block.indices, block.indptr), shape=block.shape).has_canonical_format


def test_masked_arrays_arrow_columns_and_objects_of_numbers():
    masked = np.ma.masked_equal([[1.0, -999.0], [-999.0, -999.0]], -999.0)
    X = Views(a=masked, b=[1, 2])
    assert np.isnan(X["a"][0, 1])
    assert X.present("a").tolist() == [True, False]
    arrow = Views(t=pa.array(["x", None]), n=pa.array([1, 2]), f=pa.chunked_array([[True], [None]]))
    assert arrow.kind("t") == "objects"
    assert arrow["n"].tolist() == [[1], [2]]
    frame = pd.DataFrame({"x": [1, 2], "y": [3.5, None]}, dtype=object)
    assert Views(a=frame)["a"].shape == (2, 2)
    assert Views(a=[[None, 1.0], [2.0, 3.0]]).kind("a") == "dense"
    bare = np.ma.masked_array(np.arange(6.0).reshape(2, 3), mask=[[0, 1, 1], [0, 0, 0]])
    assert as_views(bare, views={"a": [0], "b": [1, 2]}).mask.tolist() == [[True, False], [True, True]]


# -- missing views
def holed():
    H = A.copy()
    H[1] = np.nan
    return H


def test_a_row_of_only_nan_is_missing_and_a_single_nan_is_not():
    partly = A.copy()
    partly[2, 1] = np.nan
    X = Views(a=holed(), b=partly)
    assert X.mask.tolist() == [[True, True], [False, True], [True, True], [True, True]]
    with pytest.raises(ValueError, match=r"View 'b' contains NaN in row 2, column 1"):
        X.check_finite()
    assert Views(a=holed(), b=A).check_finite().mask is not None


@pytest.mark.parametrize("form", ["array", "dict"])
def test_a_mask_can_be_given(form):
    there = np.array([True, False, True, True])
    mask = np.column_stack([np.ones(4, bool), there]) if form == "array" else {"b": there}
    for block in (B, sp.csr_array(B), ["p", "q", "r", "s"]):
        X = Views({"a": A, "b": block}, mask=mask)
        assert X.present("b").tolist() == there.tolist()
    assert np.isnan(Views({"a": A, "b": B}, mask=mask)["b"][1]).all()
    assert np.array_equal(B[1], [0, 2]), "the input was changed"
    assert Views({"a": A, "b": sp.csr_array(B)}, mask=mask)["b"][[1]].nnz == 0


def test_mask_and_nan_add_up_and_a_full_mask_is_none():
    X = Views({"a": holed(), "b": B}, mask={"b": np.array([False, True, True, True])})
    assert X.mask.tolist() == [[True, False], [False, True], [True, True], [True, True]]
    assert Views({"a": A}, mask=np.ones((4, 1), bool)).mask is None
    assert X[[2, 3]].mask is None
    assert Views(X).mask.tolist() == X.mask.tolist()
    assert as_views(X, mask={"a": np.array([True, True, True, False])}).mask.tolist()[3] == [False, True]
    X = Views(a=A, ghost=None)  # missing in all samples
    assert X.kind("ghost") == "missing"
    assert X[[0]].block("ghost") is None
    assert not X.present("ghost").any()
    assert "missing" in repr(X)


# -- rows
INDICES = [[2, 0], ([2, 0], Ellipsis), np.array([2, 0]), np.array([2, 0], dtype=np.uint8), [-2, -4], range(2, -1, -2),
           (np.array([2, 0]), slice(None))]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_rows_by_every_index_of_scikit_learn(index):
    X = Views(a=A, s=sp.csr_array(B), t=list("pqrs"), g=np.outer(A[:, 0], A[:, 0]), precomputed="g")
    part = X[index]
    assert np.array_equal(part["a"], A[[2, 0]])
    assert np.array_equal(part["s"].toarray(), B[[2, 0]])
    assert part["t"].tolist() == ["r", "p"]
    assert np.array_equal(part["g"], np.outer(A[:, 0], A[:, 0])[np.ix_([2, 0], [2, 0])])


def test_rows_by_mask_slice_integer_and_nothing():
    mask = [True, False, False, True]
    assert EXPECTED[np.array(mask)] == EXPECTED[mask] == EXPECTED[[0, 3]]
    assert EXPECTED[1:3] == EXPECTED[[1, 2]]
    assert EXPECTED[2] == EXPECTED[np.int64(2)] == EXPECTED[[2]]
    assert len(EXPECTED[[]]) == 0
    assert [row["a"][0, 0] for row in EXPECTED] == [0, 3, 6, 9]


def test_shape_names_selection_renaming_alignment():
    assert EXPECTED.shape == (4, 3)
    assert len(EXPECTED) == 4
    assert EXPECTED.names == ("a", "b")
    assert "a" in EXPECTED
    assert "z" not in EXPECTED
    assert EXPECTED[["b"]].names == ("b",)
    assert EXPECTED[["b", "a"]].names == ("b", "a")
    assert EXPECTED.align(("c", "b", "a")).mask[:, 0].tolist() == [False] * 4
    assert EXPECTED.align(("a", "b")) is EXPECTED
    assert EXPECTED.renamed({"a": "x"}).names == ("x", "b")


def test_side_by_side_and_stacked():
    assert (Views(a=A) | Views(b=B)) == EXPECTED
    assert Views.concat([EXPECTED[:1], EXPECTED[1:]]) == EXPECTED
    mixed = Views(a=holed(), s=sp.csr_array(B), t=["p", "q", None, "s"])
    assert Views.concat([mixed[:2], mixed[2:]]) == mixed
    grown = Views.concat([Views(a=A), Views(a=A[:2], t=["x", "y"], s=sp.csr_array(B[:2]))])
    assert grown.present("t").tolist() == [False] * 4 + [True] * 2
    assert grown["s"].shape == (6, 2)
    gram = Views(g=np.eye(4), precomputed=True)
    assert Views.concat([gram[[3]], gram[[0]]])["g"].tolist() == np.eye(2).tolist()


def test_equality_and_pickle():
    assert Views(a=A, b=B) == Views(a=A.copy(), b=B.copy())
    assert Views(a=holed(), b=B) == Views(a=holed(), b=B)
    assert Views(s=sp.csr_array(B)) == Views(s=sp.csc_array(B))
    others = Views(b=A), Views(a=A + 1), Views(a=sp.csr_array(A)), Views(a=A[:2]), Views(a=A[:, :2]), "views"
    assert all(Views(a=A) != other for other in others)
    assert Views(a=holed(), b=B) != Views(a=A, b=B)
    assert Views(s=sp.csr_array(B)) != Views(s=sp.csr_array(2 * B))
    assert Views(t=["a"]) != Views(t=["b"])
    assert Views(t=["a", "b"]) != Views(t=["a", "c"])
    with pytest.raises(TypeError, match="unhashable"):
        hash(EXPECTED)
    X = Views(a=holed(), s=sp.csr_array(B), t=["p", None, "r", "s"], g=np.eye(4), precomputed="g")
    assert pickle.loads(pickle.dumps(X)) == X


def test_it_shows_itself():
    X = Views({"a <b>": holed(), "t": ["p", "q", "r", "s"]})
    assert repr(X) == (
        "Views of 4 samples\n  a <b>  dense float64  3 columns  present in 3\n  t      objects        1 column"
    )
    page = X._repr_html_()
    assert "a &lt;b&gt;" in page
    assert "<td>3 of 4</td>" in page
    assert "<b>" not in page


# -- precomputed
def test_a_precomputed_view_keeps_its_gram_through_rows_of_rows():
    K = A @ A.T
    X = Views(g=K, a=A, precomputed="g")
    part = X[[3, 1, 0]][[0, 2]]
    assert np.array_equal(part["g"], K[np.ix_([3, 0], [3, 0])])
    assert part.block("g").values is K
    assert part.shape == (2, 3)
    kept = part.block("g").reference(strip=True)
    assert kept.values is None
    assert np.array_equal(X[[1]].block("g").block(kept), K[[1]][:, [3, 0]])
    assert np.array_equal(kept.columns_of(K[[1]][:, [3, 0]]), K[[1]][:, [3, 0]]), "columns in the order of fit"
    assert np.array_equal(kept[[1]].columns_of(K[[1]][:, [3, 0]]), K[[1]][:, [0]]), "some missing after fit"
    assert np.array_equal(kept.columns_of(K[[1]]), K[[1]][:, [3, 0]]), "columns of the whole Gram"
    assert np.array_equal(part.block("g").diagonal(), K.diagonal()[[3, 0]])
    X = Views(g=K, h=2 * K)  # plain ones are cut by rows and columns, as scikit-learn asks
    assert X.shape == (4, 4)
    part = X[np.ix_([0, 2], [1, 2, 3])]
    assert np.array_equal(part["g"], K[np.ix_([0, 2], [1, 2, 3])])
    assert np.array_equal(part["h"], 2 * K[np.ix_([0, 2], [1, 2, 3])])


# -- errors
TWO = {"a": A, "b": B}
HOLES, ONE_HOLE = [[np.nan] * 3, [np.nan, 1, 1], [np.nan, np.nan, 1]], [[1.0, 1, 1], [1, 1, np.nan], [1, 1, 1]]


def frame(columns):
    return pd.DataFrame(B, columns=list(columns))


ERRORS = [
    (lambda: Views(a=A[:3], b=B, c=B), "View 'a' has 3 rows, the others 4. Pad it and mark missing rows with `mask=`."),
    (lambda: Views(b=B[:2], a=A), "View 'b' has 2 rows, the others 4."),
    (lambda: Views(), "Views needs at least one view; got none."),
    (lambda: Views(a=holed()), "Sample 1 has no view at all (NaN, None or masked in 'a')."),
    (lambda: Views(a=np.full((3, 2), np.nan), b=[None, None, None]), "3 samples (0, 1, 2) have no view at all"),
    (lambda: Views(a=np.full((7, 2), np.nan)), "7 samples (0, 1, 2, 3, 4, ...) have no view"),
    (lambda: Views(a=None), "No view has data: 'a' is None."),
    (lambda: EXPECTED["c"], "No view is named 'c'; the views are 'a', 'b'."),
    (lambda: Views(A), "Views takes a dict or list of arrays, or keywords; got ndarray."),
    (lambda: Views({3: A}), "The names of views must be strings; got 3."),
    (lambda: Views({"a": A}, a=A), "View 'a' is given twice."),
    (lambda: Views(a=np.ones((1, 2, 3))), "View 'a' must have 2 dimensions, samples by columns; got shape (1, 2, 3)."),
    (lambda: Views(a=np.ones((4, 0))), "View 'a' has 0 feature(s) (shape=(4, 0)) while a minimum of 1 is required."),
    (lambda: Views(a=np.ones((2, 2)) * 1j), "Complex data not supported: view 'a' has dtype complex128."),
    (lambda: Views(a=np.array([["1", "2"]])), "View 'a' is not numeric: its columns have dtype <U1."),
    (lambda: Views(a=np.array([["x", 1]], dtype=object)), "View 'a' is not numeric: could not convert string"),
    (lambda: Views(a=np.array([["2020-01-01"]], dtype="M8[D]")), "not numeric: its columns have dtype datetime64[D]."),
    (lambda: Views(a=np.array([1j, 2])), "Complex data not supported: view 'a'"),
    (lambda: Views(a="hello"), "View 'a' is one string. Give a table, or a sequence with one entry per sample."),
    (lambda: Views(a={"x": 1}), "View 'a' is one dict. Give a table, or a sequence"),
    (lambda: Views(s=sp.csr_array((4, 0))), "View 's' has 0 feature(s) (shape=(4, 0)) while"),
    (lambda: EXPECTED[["a", "b", "b"]], "A view is selected twice: 'a', 'b', 'b'."),
    (lambda: EXPECTED["a", "b"], "Select several views by a list of names, X[['a', 'b']]; got ('a', 'b')."),
    (lambda: EXPECTED[np.array([[0, 1], [2, 3]])], "a 1-D list of positions; got an index of shape (2, 2)."),
    (lambda: Views.concat([A]), "Views.concat takes Views; got ndarray. Use as_views first."),
    (
        lambda: Views.concat([Views(a=frame(names)) for names in ("xy", "xz")]),
        "View 'a' has other columns in different parts: y, z are not in all.",
    ),
    (lambda: as_views(WIDE, {"a": None}), "view 'a' must be a slice, positions, a mask or names; got None."),
    (lambda: as_views(WIDE, {"a": [0.2, 1.7]}), "view 'a' must be integers, a mask or names; got [0.2, 1.7]."),
    (lambda: Views(a=frame("xx")), "The data frame (DataFrame) cannot be read: "),
    (lambda: Views(g=ONE_HOLE, precomputed=True).check_finite(), "View 'g' contains NaN in row 1, column 2"),
    (lambda: Views(g=HOLES, a=A[:3], precomputed="g").check_finite(), "View 'g' contains NaN in row 2, column 1. Only"),
    (lambda: Views(a=3), "a sparse matrix, a data frame or a sequence with one entry per sample; got int."),
    (lambda: Views(a=[[1, 2], [3]]), "The rows of view 'a' have different lengths"),
    (lambda: Views(TWO, mask=np.ones((4, 2), dtype=np.int64)), "True where present; got int64 of shape (4, 2)."),
    (lambda: Views(TWO, mask=np.ones((3, 2), dtype=bool)), "`mask` must be booleans of shape (4, 2), samples by"),
    (lambda: Views(TWO, mask={"c": np.ones(4, bool)}), "`mask` names the view 'c'; the views are 'a', 'b'."),
    (lambda: Views(TWO, mask={"b": np.ones(3, bool)}), "must be booleans of shape (4,); got bool of shape (3,)."),
    (lambda: Views(TWO, mask={"b": list("TFTT")}), "view 'b' must be booleans of shape (4,); got <U1 of shape (4,)."),
    (lambda: Views(a=A, precomputed="a"), "must be a square Gram matrix over all samples; got 4 x 3."),
    (lambda: Views(a=A, precomputed="g"), "No view is named 'g'"),
    (lambda: EXPECTED[[0, 4]], "Row 4 is out of range: there are 4 samples."),
    (lambda: EXPECTED[np.ones(3, bool)], "A mask of rows must have shape (4,); got (3,)."),
    (lambda: EXPECTED[[0.5]], "Select rows by integers, booleans or slices, and views by names; got [0.5]."),
    (lambda: EXPECTED[np.ix_([0], [1])], "View 'b' has 2 columns, but a Gram matrix of these samples has 3."),
    (lambda: Views(a=A) | Views(a=A), "Both sides have a view named 'a'. Rename one."),
    (lambda: Views(a=A) | Views(b=A[:2]), "The left side has 4 samples, the right side 2. Both must hold the same"),
    (lambda: Views.concat([]), "Views.concat got no parts. Give at least one Views."),
    (lambda: Views.concat([Views(a=A), Views(a=sp.csr_array(A))]), "View 'a' is 'dense', 'sparse' in different parts"),
    (lambda: Views.concat([Views(a=A), Views(a=B)]), "View 'a' has '3', '2' columns in different parts."),
    (lambda: Views.concat([Views(g=np.eye(2), precomputed=True) for _ in "ab"]), "have different Gram matrices."),
    (lambda: EXPECTED.align(("a",)), "View 'b' is not among the expected views 'a'. Drop or rename it."),
    (lambda: EXPECTED.renamed({"a": "b"}), "Two views would have the same name: 'b', 'b'."),
    (lambda: Views(a=np.where(A == 2, np.inf, A)).check_finite(), "View 'a' contains infinity in row 0, column 2"),
    (lambda: Views(s=sp.csr_array(np.where(B == 4, np.nan, B))).check_finite(), "'s' contains NaN in row 3, column 1"),
    (lambda: as_views(EXPECTED, "prefix"), "`views` divides one wide table, but X already has 2 views. Omit `views`."),
    (lambda: as_views(WIDE, views="suffix"), "`views` must be a dict, a list or 'prefix'; got 'suffix'."),
    (lambda: as_views(WIDE, views="prefix"), "views='prefix' needs column names, but the table has none."),
    (lambda: as_views(["a", "o"], [slice(0, 1)]), "table of samples by columns, but the data are not a table."),
    (lambda: as_views(pd.DataFrame({"price": [1]}), "prefix"), "Column 'price' has no view prefix. With"),
    (lambda: as_views(frame("xy"), {"a": ["zz"]}), "selects the columns 'zz', but the table has the columns 'x', 'y'."),
    (lambda: as_views(WIDE, {"a": ["zz"]}), "View 'a' selects the columns 'zz', but the table has no column names."),
    (lambda: as_views(WIDE, views={"a": [0, 9]}), "View 'a' selects column 9, but the table has 5 columns."),
    (lambda: as_views(WIDE, views={"a": [0, -9]}), "View 'a' selects column -9, but the table has 5 columns."),
    (lambda: as_views(WIDE, {"a": [True] * 3}), "View 'a' is selected by a mask of 3 columns, but the table has 5."),
    (lambda: as_views(pd.DataFrame({"x": [1], "y": [{}]})), "View 'view0': column 'y' holds dict values, which are"),
    (lambda: np.asarray(EXPECTED), "Expected one table, got the views 'a', 'b'. Select one view by its name,"),
    (lambda: as_views(np.ones(3)), "Expected 2D array, got 1D array instead: shape (3,). Reshape your data"),
    (lambda: as_views(np.float64(3)), "Expected 2D array, got scalar array instead"),
    (lambda: Gram(np.eye(2)).block(Gram(np.eye(3))), "view has 2 columns, but its reference has 3 samples."),
    (lambda: Gram(None), "A Gram needs `values` or `index`; both are None."),
    (lambda: Gram(np.ones((2, 3))).diagonal(), "needs the square Gram matrix of all samples; it was not given."),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)) as caught:
        call()
    assert message in str(caught.value).strip('"')


def test_frames_without_narwhals_get_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"pip install 'consilience\[frames\]'"):
        as_views(pd.DataFrame({"x": [1.0]}))


# -- sparse matrices whose parts do not fit
SPARSE = np.arange(1.0, 13).reshape(4, 3) * (np.arange(12).reshape(4, 3) % 5 > 0)
LABELS = np.array([0, 1, 0, 1])


def with_part(kind, part, change, dense=SPARSE):
    """A sparse matrix one of whose arrays was replaced after it was built, which SciPy does not look at."""
    made = {"csr": sp.csr_array, "csc": sp.csc_matrix, "coo": sp.coo_array, "bsr": sp.bsr_array}[kind](dense)
    made = sp.bsr_array(dense, blocksize=(2, 1)) if kind == "bsr" else made
    if kind == "coo" and part != "data":
        row, col = made.coords
        made.coords = (change(row), col) if part == "row" else (row, change(col))
    else:
        setattr(made, part, change(getattr(made, part)))
    return made


def replaced(position, value):
    def change(values):
        values = values.copy()
        values[position] = value
        return values

    return change


def all_refused(message, *calls):
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()


INDEX = r"it has the (row|column) index -?\d+, but \d (row|column)s"
POINTER = "`indptr` must increase from 0 to at most"
POINTERS = {
    "from 1": replaced(0, 1),
    "from -1": replaced(0, -1),
    "too far": replaced(-1, 10**6),
    "falling": replaced(1, 10**6),
    "short": lambda values: values[:-1],
    "long": lambda values: np.append(values, values[-1]),
    "empty": lambda values: values[:0],
}
KINDS = {"csr": ["indices"], "csc": ["indices"], "bsr": ["indices"], "coo": ["row", "col"]}
DAMAGED = {
    f"{kind}, {part} {value}": (kind, part, replaced(1, value), INDEX)
    for kind, parts in KINDS.items() for part in parts for value in (7, 2**30, -1, -(2**30))
}  # fmt: skip
DAMAGED |= {
    f"{kind}, indptr {title}": (kind, "indptr", change, POINTER)
    for kind in ("csr", "csc", "bsr") for title, change in POINTERS.items()
}  # fmt: skip
FEW = r"\d+ values, but \d+( and \d+)? indices"
DAMAGED |= {f"{kind}, few values": (kind, "data", lambda values: values[:-2], FEW) for kind in KINDS}
DAMAGED["coo, few rows"] = "coo", "row", lambda values: values[:-2], "values, but"
DAMAGED["csr, indices that are not whole"] = "csr", "indices", lambda values: values + 0.5, "indices are not integers"


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_sparse_matrices_are_refused_with_the_view_named(case):
    *how, message = DAMAGED[case]
    bad = with_part(*how)
    for name, *reads in (
        ("View 'texts'", lambda: Views(texts=bad)),
        ("View 'view1'", lambda: as_views([SPARSE, bad])),
        ("The data", lambda: as_views(bad)),
        ("View 'b'", lambda: cs.CoRegularizedRidgeClassifier().fit({"a": SPARSE, "b": bad}, LABELS)),
        ("View 'b'", lambda: cs.OnlinePerceptron().fit({"a": SPARSE, "b": bad}, LABELS)),
    ):
        all_refused(f"{name} is a damaged sparse matrix: .*({message})", *reads)
    for kernel in (cs.kernels.RBF(), cs.kernels.Linear(), cs.kernels.Intersection()):
        all_refused("is a damaged sparse matrix", lambda: kernel(bad), lambda: kernel(sp.csr_array(SPARSE), bad))  # noqa: B023
    if how[0] not in ("csr", "coo"):
        return
    square, y = with_part(*how), LABELS.astype(float)
    square._shape = (4, 4)
    all_refused(
        "is a damaged sparse matrix",
        lambda: cs.CoRegularizedRidge(graph_penalty=0.1, graph=square).fit(SPARSE, y),
        lambda: cs.CoRegularizedRidge(graph_penalty=0.1, graph=lambda block: square).fit(SPARSE, y),
        lambda: cs.graphs.laplacian(square),
        lambda: cs.CoRegularizedRidgeClassifier().fit(SPARSE, bad),
    )


ONLINE = [
    cs.OnlinePerceptron(shuffle=False),
    cs.OnlinePerceptron(3, shuffle=False),
    cs.KernelPerceptron(cs.kernels.RBF(0.1), shuffle=False),
    cs.OrthogonalPerceptron(shuffle=False),
]


@pytest.mark.parametrize("case", [case for case in DAMAGED if case.startswith("csr")])
@pytest.mark.parametrize("estimator", ONLINE, ids=repr)
def test_damaged_samples_leave_a_fitted_model_as_it_was(estimator, case):
    *how, _ = DAMAGED[case]
    bad, bad_row = with_part(*how), with_part(*how, SPARSE[:1])
    model = clone(estimator)
    for i in (0, 1, 2, 3, 0, 1):
        model.learn_one({"texts": sp.csr_matrix(SPARSE[[i]])}, int(LABELS[i]))
    before = model.decision_function({"texts": SPARSE})
    counts = model.n_mistakes_, model.n_updates_, model.n_samples_seen_
    all_refused(
        "View 'texts' is a damaged sparse matrix",
        lambda: model.predict({"texts": bad}),
        lambda: model.partial_fit({"texts": bad}, LABELS),
        lambda: model.learn_one({"texts": bad_row}, 1),
        lambda: model.predict_one({"texts": bad_row}),
        lambda: model.fit({"texts": bad}, LABELS),
    )
    assert np.array_equal(model.decision_function({"texts": SPARSE}), before)
    assert (model.n_mistakes_, model.n_updates_, model.n_samples_seen_) == counts


MESSY = {
    "unsorted": (np.array([2, 0, 1, 2, 0]), np.array([0, 2, 3, 3, 5])),
    "duplicated": (np.array([1, 1, 0, 2, 2]), np.array([0, 2, 3, 3, 5])),
    "both": (np.array([2, 0, 2, 0, 2]), np.array([0, 3, 3, 3, 5])),
}


@pytest.mark.parametrize("claim", [None, True], ids=["no claim", "claims to be sorted"])
@pytest.mark.parametrize("kind", MESSY)
def test_unsorted_and_repeated_entries_are_read_as_their_sum(kind, claim):
    indices, indptr = MESSY[kind]
    messy = sp.csr_matrix((np.arange(1.0, 6), indices.astype(np.int32), indptr.astype(np.int32)), shape=(4, 3))
    dense = np.zeros((4, 3))
    np.add.at(dense, (np.repeat(np.arange(4), np.diff(indptr)), indices), np.arange(1.0, 6))
    if claim:
        messy.has_canonical_format = messy.has_sorted_indices = True
    before = [part.copy() for part in (messy.data, messy.indices, messy.indptr)]
    assert np.array_equal(Views(s=messy)["s"].toarray(), dense)
    for kernel in (cs.kernels.RBF(0.3), cs.kernels.Linear(), cs.kernels.Intersection()):
        np.testing.assert_allclose(kernel(messy), kernel(dense), atol=1e-14)
    for estimator in (cs.CoRegularizedRidgeClassifier("linear"), *ONLINE, cs.MaxMarginClassifier("linear")):
        own, plain = clone(estimator).fit(messy, LABELS), clone(estimator).fit(dense, LABELS)
        np.testing.assert_allclose(own.decision_function(messy), plain.decision_function(dense), atol=1e-9)
    stepwise, plain = cs.OnlinePerceptron(), cs.OnlinePerceptron().partial_fit(dense, LABELS)
    for i in range(4):
        row = messy[[i]]
        row.has_canonical_format = row.has_sorted_indices = bool(claim)
        stepwise.learn_one({"view0": row}, int(LABELS[i]))
    np.testing.assert_allclose(stepwise.decision_function(dense), plain.decision_function(dense), atol=1e-12)
    after = (messy.data, messy.indices, messy.indptr)
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))


# -- the words of errors, and copies that are not made
def test_errors_of_sparse_matrices_name_rows_columns_and_the_index_outside():
    wide = sp.csr_matrix(np.eye(2, 3))
    for kind, outer, inner, n, other in (("csr", "row", "column", 2, 3), ("csc", "column", "row", 3, 2)):
        for outside in (7, -4):
            bad = wide.asformat(kind, copy=True)
            bad.indices[1] = outside
            all_refused(f"it has the {inner} index {outside}, but {other} {inner}s\\. Build", lambda: Views(s=bad))  # noqa: B023
        bad = wide.asformat(kind, copy=True)
        bad.indptr = bad.indptr[:-1]
        message = f"from 0 to at most 2, the number of stored indices, with {n + 1} entries for {n} {outer}s\\. Build"
        all_refused(message, lambda: Views(s=bad))  # noqa: B023
    bad = sp.bsr_matrix(np.ones((4, 6)), blocksize=(2, 3))
    bad.indices[1] = 2
    all_refused(r"it has the column index 2, but 2 columns\.", lambda: Views(s=bad))


def test_a_sparse_matrix_in_order_is_not_copied_and_long_indices_are_shortened():
    own = sp.csr_array(B)
    read = Views(s=own).block("s")
    assert np.shares_memory(read.indices, own.indices)
    assert np.shares_memory(read.data, own.data)
    long = sp.csr_array((own.data, own.indices.astype(np.int64), own.indptr.astype(np.int64)), shape=own.shape)
    assert Views(s=long).block("s").indices.dtype == np.int32
    assert long.indices.dtype == np.int64


def test_only_plain_numbers_of_frames_are_read_at_once():
    from consilience.views._frames import _is_numeric

    frame = pd.DataFrame({"x": [1.0, 2.0], "n": [1, 2], "b": [True, False]})
    assert _is_numeric(frame)
    for other in (np.array([1, 2], dtype=np.longdouble), np.array([1, 2j]), ["a", "b"], pd.array([1, None])):
        assert not _is_numeric(frame.assign(other=other))
    assert not _is_numeric(pl.DataFrame({"x": [1.0]}))


def test_neighboring_columns_of_a_file_are_not_read(tmp_path):
    from consilience.views._tables import _columns_at

    table = np.memmap(tmp_path / "table", dtype=np.float64, mode="w+", shape=WIDE.shape)
    table[:] = WIDE
    for where, shared in (([1, 2, 3], True), ([4], True), ([0, 2, 3], False), ([3, 2], False), ([], False)):
        found = _columns_at(table, np.array(where, dtype=int))
        assert np.array_equal(found, WIDE[:, where])
        assert np.shares_memory(found, table) == shared


def test_docstrings_repeat_shared_texts_with_their_indentation():
    from consilience.views._docs import _TEXTS, _filled

    lines = _TEXTS["kernel"].strip("\n").split("\n")
    expected = "\n".join(f"    {line}" if line else "" for line in lines)
    assert _filled("A.\n\n    {kernel}\n    {not this}\n") == f"A.\n\n{expected}\n    {{not this}}\n"


def test_tables_are_put_together_tile_by_tile():
    from consilience.views._frames import _side_by_side

    table = np.arange(35.0).reshape(7, 5)
    parts = [table[:, :1], table[:, 1:3].astype(int), table[:, 3:4], table[:, 4:]]
    for size in (1, 2, 3, 7, 256):
        assert np.array_equal(_side_by_side(parts, size), table)
    assert _side_by_side([part.astype(np.float32) for part in parts]).dtype == np.float32
    assert _side_by_side([parts[1]]).dtype == np.float64


class Relation:
    """A table in a database, of the shape of those of DuckDB."""

    columns = ("p", "q")

    def df(self):
        return pd.DataFrame({"p": [1.0], "q": [2.0]})


class Labeled:
    """An array in memory of the shape of those of xarray."""

    __module__ = "xarray.core.dataarray"

    def __init__(self, values):
        self.values, self.shape, self.ndim = values, values.shape, values.ndim

    def __dask_graph__(self):
        return None

    def to_numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)


@pytest.mark.filterwarnings("ignore:Determining the column names of a LazyFrame")
def test_data_that_are_not_in_memory_or_mixed_get_a_remedy():
    table = pl.DataFrame({"p": [1.0, 2.0], "q": [3.0, 4.0]})
    for lazy, call in ((table.lazy(), "collect"), (table.to_arrow().to_batches()[0], "to_pandas"), (Relation(), "df")):
        for read in (lambda X: Views(a=X), cs.as_views, lambda X: cs.CoRegularizedRidge().fit(X, [0.0, 1.0])):
            with pytest.raises(ValueError, match=rf"Load it into memory: give what its method {call}\(\) returns\.$"):
                read(lazy)


def test_arrays_of_xarray_are_not_dask_collections():
    A = np.random.default_rng(0).normal(size=(20, 3))
    for X in (Labeled(A), {"a": Labeled(A)}, [Labeled(A)]):
        np.testing.assert_array_equal(next(iter(cs.as_views(X)._blocks.values())), A)
        assert cs.CoRegularizedRidge().fit(X, A[:, 0]).predict(X).shape == (20,)


def test_tensors_with_gradients_and_mixed_with_numpy_get_a_sentence():
    torch = pytest.importorskip("torch")
    A = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"View 'a' is a tensor that records gradients\. .* tensor\.detach\(\)"):
        Views(a=torch.tensor(A, requires_grad=True))
    for model in (cs.CoRegularizedRidge(), cs.ViewMetricRidge(), cs.ConsensusRegressor()):
        for X in ({"a": A, "b": torch.tensor(A)}, {"b": torch.tensor(A), "a": A}):
            with pytest.raises(TypeError, match=r"Arrays are of different libraries: numpy\.ndarray, torch\.Tensor\."):
                model.fit(X, A[:, 0])
