"""Files of samples are read by names: columns of models, layouts, annotated matrices, wide tables."""

import re
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from consilience.io import read_layout, read_samples, read_stream

N = 24
LABELS = np.array(["p", "q"] * (N // 2))
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 3)), columns=["a__1", "a__2", "b__1"]).assign(y=LABELS)


@pytest.fixture
def data(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_row_numbers_that_pandas_wrote_are_no_feature(tmp_path):
    table = FRAME.iloc[::-1]
    table.to_csv(tmp_path / "t.csv")
    with pytest.warns(UserWarning, match=r"'t.csv' has a column without a name.* It is ignored"):
        read = read_samples([tmp_path / "t.csv"], target="y").X
    assert read.feature_names == {"a": ("a__1", "a__2"), "b": ("b__1",)}
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert next(read_stream(tmp_path / name))[0].names == ("a", "b")


def test_rows_of_csv_files_may_be_long(tmp_path):
    row = ",".join(["1." + "0" * 1000] * 3000)  # three megabytes
    (tmp_path / "t.csv").write_text("\n".join([",".join(f"c{j}" for j in range(3000)), row, row]))
    assert read_samples([tmp_path / "t.csv"]).X.shape == (2, 3000)


def test_lists_are_the_rows_of_a_view_or_objects(tmp_path):
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2)
    table = pa.table({"fixed": fixed, "gaps": [[1.0, 2.0], None], "words": [["a", "b"], ["c", "d"]], "n": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    read = read_samples([tmp_path / "t.parquet"]).X
    assert set(read.names) == {"fixed", "gaps", "words", "t"}
    np.testing.assert_array_equal(read["fixed"], [[1, 2], [3, 4]])
    assert read.present("gaps").tolist() == [True, False]
    assert read["words"].tolist() == [["a", "b"], ["c", "d"]]


def test_vectors_of_an_npz_file(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((3, 2)), b=np.zeros((3, 4)), who=["x", "y", "z"], y=[0, 1, 0], version=np.array(3))
    read = read_samples([path], target="y", ids="who")
    assert read.X.names == ("a", "b")
    assert read.ids.tolist() == ["x", "y", "z"]


@pytest.mark.filterwarnings("ignore:'two.csv'")
def test_text_that_several_files_leave_out_is_told(tmp_path):
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for file in files:
        file.write_text(f"id,n,note_{file.stem}\n1,1.0,u\n2,2.0,v\n")
    with pytest.warns(UserWarning, match=r"'one.csv' has columns of text besides numbers: note_one. They are ignored"):
        read_samples(files, ids="id")


def test_columns_of_libsvm_files_are_never_shifted(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("1 2:5\n0 3:6\n")  # no row has the first column
    for sparse in (read_samples([path]).X["t"], next(read_stream(path))[0]["view0"]):
        np.testing.assert_array_equal(sparse.toarray(), [[0, 5, 0], [0, 0, 6]])


# -- what a fitted model knows
def numbers(*names, width=None):
    """What a model knows of a view: its column names, or their number alone."""
    return "numbers", width or len(names), names or None


def test_columns_are_found_by_name_in_any_order(data):
    FRAME[["b__1", "y", "a__2", "a__1"]].assign(more="text", day="2020-01-01").to_csv(data, index=False)
    read = read_samples([data], known={"a": numbers("a__1", "a__2"), "b": numbers("b__1")}).X
    np.testing.assert_allclose(read["a"], FRAME[["a__1", "a__2"]])
    assert read.feature_names == {"a": ("a__1", "a__2"), "b": ("b__1",)}
    read = read_samples([data], known={"other": numbers("a__2")}, views={"v": ["a__*"]}).X
    np.testing.assert_allclose(read["other"], FRAME[["a__2"]])  # the one view of a model may have another name


KNOWN_ERRORS = {
    "View 'a' has no column 'a__3', which the model was fitted on, in 't.csv'. It has a__1, a__2, b__1, y.":
        {"a": numbers("a__1", "a__2", "a__3")},
    "The model was fitted on the view 'q' with the column 'q1', which 't.csv' does not have: it has a__1, a__2, b__1":
        {"q": numbers("q1", "q2")},
    "The model was fitted on the views 'q', 'r', none of which is in 't.csv'":
        {"q": numbers("q1"), "r": numbers(width=2)},
    "Column 'a__1' of 't.csv' may be of the view 'u' or of 'v': the model knows it in both.":
        {"u": numbers("a__1", "a__2"), "v": numbers("b__1", "a__1")},
    "View 'u' has 3 columns in 't.csv', but the model was fitted on 2, without names.": {"u": numbers(width=2)},
    "View 'a' has 2 columns in 't.csv', but the model was fitted on 5, without names.":
        {"a": numbers(width=5), "b": numbers(width=1)},
    "Column 'y' of 't.csv' has no numbers.": {"a": numbers("a__1", "y")},
}  # fmt: skip


@pytest.mark.parametrize("message", KNOWN_ERRORS)
def test_files_that_do_not_fit_a_model_get_a_sentence(message, data):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_samples([data], known=KNOWN_ERRORS[message])


def test_the_view_called_like_a_file_has_its_columns_and_the_others_theirs(data):
    known = {"b": numbers("b__1"), "a": numbers("a__1", "a__2"), "c": numbers("a__2")}
    read = read_samples([data.rename(data.with_stem("a"))], known=known).X
    assert set(read.names) == {"a", "b"}  # c has a column of a, whose file this is


def test_views_without_column_names_are_found_by_their_own(data, tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((N, 2)), b=np.zeros((N, 3)), y=LABELS)
    assert read_samples([path], known={"a": numbers(width=2), "c": numbers(width=2)}).X.names == ("a",)
    assert read_samples([data], known={"a": numbers(width=2), "c": ("", None, None)}).X.names == ("a",)
    only = read_samples([data], known={"q": numbers(width=3)}).X
    np.testing.assert_allclose(only["q"], FRAME[["a__1", "a__2", "b__1"]])
    words = read_samples([data], known={"q": ("objects", 1, None)}).X
    assert words["q"].tolist() == LABELS.tolist()


def test_text_stays_text_where_a_file_has_digits_in_it(data):
    data.write_text("word,n\n007,1.0\n008,2.0\n")
    known = {"text": ("objects", 1, ("word",)), "n": numbers("n")}
    assert read_samples([data], known=known).X["text"].tolist() == ["007", "008"]


# -- annotated matrices
def annotated(path, genes=("g1", "g2", "g3"), X=None):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    X = sp.csr_matrix(np.random.default_rng(0).random((N, len(genes)))) if X is None else X
    obs = pd.DataFrame({"y": LABELS}, index=[f"s{i}" for i in range(N)])
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=list(genes))).write_h5ad(path)


@pytest.mark.filterwarnings("ignore")
def test_annotated_matrices_are_read_by_the_names_of_their_variables(tmp_path):
    Z = np.random.default_rng(0).random((N, 3))
    annotated(tmp_path / "one.h5ad", X=Z)
    annotated(tmp_path / "two.h5ad", ("g3", "g9", "g1", "g2"), sp.csc_matrix(Z[:, [2, 0, 0, 1]]))
    annotated(tmp_path / "twice.h5ad", ("g1", "g1", "g3"))
    one = read_samples([tmp_path / "one.h5ad"], target="y").X
    assert one.feature_names == {"one": ("g1", "g2", "g3")}
    known = {"one": numbers("g1", "g2", "g3")}
    two = read_samples([tmp_path / "two.h5ad"], target="y", known=known).X
    np.testing.assert_allclose(two["one"].toarray(), Z)
    with pytest.raises(ValueError, match=r"View 'one' has no column 'g2', .* in 'twice.h5ad'. It has g1, g1-1, g3."):
        read_samples([tmp_path / "twice.h5ad"], target="y", known=known)


@pytest.mark.filterwarnings("ignore")
def test_indices_of_a_sparse_file_that_leave_the_matrix_are_refused_before_they_are_used(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    path = tmp_path / "evil.h5ad"
    annotated(path)
    with h5py.File(path, "r+") as file:
        file["X/indices"][:] = np.full(len(file["X/indices"]), 40_000_000)
    with pytest.raises(ValueError, match=r"The matrix of 'evil' in 'evil.h5ad' .* index 40000000"):
        read_samples([path], target="y")
    with pytest.raises(ValueError, match=r"'evil.h5ad' .* index 40000000"):
        read_samples([path, path], target="y", ids="obs_names")


@pytest.mark.filterwarnings("ignore")
def test_annotated_matrices_and_their_modalities(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    mudata = pytest.importorskip("mudata", reason="mudata is not installed")
    rng = np.random.default_rng(0)
    obs = pd.DataFrame({"kind": ["t", "b", "t", "b"], "depth": [1.0, 2.0, 3.0, 4.0]}, index=["c1", "c2", "c3", "c4"])
    rna = anndata.AnnData(X=rng.random((4, 3)).astype(np.float32), obs=obs)
    protein = anndata.AnnData(X=sp.csr_matrix(rng.random((3, 2)).astype(np.float32)), obs=obs.loc[["c3", "c1", "c4"]])
    rna.write_h5ad(tmp_path / "rna.h5ad")
    one = read_samples([tmp_path / "rna.h5ad"], target="kind", ids="obs_names")
    np.testing.assert_allclose(one.X["rna"], rna.X)
    assert one.X.names == ("rna",)  # notes on the cells are no view
    assert one.y.tolist() == ["t", "b", "t", "b"]
    both = mudata.MuData({"rna": rna, "protein": protein})
    both.obs["kind"] = obs["kind"]
    both.write(tmp_path / "cells.h5mu")
    cells = read_samples([tmp_path / "cells.h5mu"], target="kind", ids="obs_names")
    place = {name: k for k, name in enumerate(cells.ids.tolist())}
    np.testing.assert_allclose(cells.X["rna"][[place[c] for c in obs.index]], rna.X)
    np.testing.assert_allclose(cells.X["protein"][[place[c] for c in ("c3", "c1", "c4")]], protein.X.toarray())
    assert not cells.X.present("protein")[place["c2"]]


# -- layouts
def test_a_layout_names_columns_target_and_samples(tmp_path):
    columns = {"m1": [1.0, 2.0], "m2": [3.0, 4.0], "t": ["x", "y"], "k": [5.0, None], "y": [0, 1], "id": ["a", "b"]}
    pd.DataFrame(columns).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "v.toml").write_text('target = "y"\nid = "id"\n[views]\nsound = ["m*"]\ntext = "t"\nlast = ["k"]\n')
    samples = read_samples([tmp_path / "t.parquet"], views=tmp_path / "v.toml")
    assert samples.X.names == ("sound", "text", "last")
    assert samples.X.mask.tolist() == [[True, True, True], [True, True, False]]
    assert samples.y.tolist() == [0, 1]
    assert samples.ids.tolist() == ["a", "b"]


def test_columns_that_a_layout_names_must_be_there(data, tmp_path):
    FRAME.rename(columns={"b__1": "b[1]"}).to_csv(data, index=False)
    read = read_samples([data], views={"v": ["a__*", "b[1]"]}, target="y").X  # a name is no pattern
    assert read.feature_names == {"v": ("a__1", "a__2", "b[1]")}
    with pytest.raises(ValueError, match=r"View 'v' has no column 'a__9' in 't.csv'."):
        read_samples([data], views={"v": ["a__1", "a__9"]}, target="y")
    np.savez(tmp_path / "t.npz", m1=np.ones((2, 2)), m2=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"View 'v' is made of 'm1', 'm2' of 't.npz'; a matrix is a view alone"):
        read_samples([tmp_path / "t.npz"], views={"v": ["m*"]})


TOMLS = {
    "has no table [views] with columns or patterns by view.": b"",
    "has no table [views] with columns or patterns by view. ": b"[views]\n",
    "cannot be read as TOML: ": b"[views]\na = [",
    "is not encoded in UTF-8": b'[views]\na = "\xe9"\n',
    "gives the view 'a' as 5; give a column name, a pattern such as 'mfcc_*', or a list of them, as strings.": (
        b"[views]\na = 5\n"
    ),
    "gives the view 'a' as ['b', 5];": b'[views]\na = ["b", 5]\n',
    "names the column `target` by 5; give its name as a string.": b'target = 5\n[views]\na = "b"\n',
}


@pytest.mark.parametrize("message", TOMLS)
def test_odd_layouts_get_a_sentence(message, tmp_path):
    path = tmp_path / "l.toml"
    path.write_bytes(TOMLS[message])
    with pytest.raises(ValueError, match=re.escape(message.strip())) as raised:
        read_layout(path)
    assert str(raised.value).startswith(f"'{path}' ")


# -- wide tables
def seconds(call):
    best = np.inf
    for _ in range(2):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def test_reading_takes_time_in_proportion_to_the_columns(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"")
    times = {}
    for d in (2_500, 20_000):
        names = [f"c{j}" for j in range(d)]
        table = pa.table({**{name: [0.5, 1.5] for name in names}, **{f"t{j}": ["a", "b"] for j in range(d // 16)}})
        monkeypatch.setattr("consilience.io._arrow._load_parquet", lambda *_, table=table: [("'t'", table)])
        known = {"v": ("numbers", d, tuple(reversed(names)))}
        views = {"v": names[::2], "w": names[1::2]}
        times[d] = [
            seconds(lambda: read_samples([path])),
            seconds(lambda known=known: read_samples([path], known=known)),
            seconds(lambda views=views: read_samples([path], views=views)),
            seconds(lambda known=known: read_samples([path], known=known, views={"u": ["c*"]})),
        ]
    ratios = [large / small for small, large in zip(*times.values(), strict=True)]
    assert max(ratios) < 24  # 8 times the columns; a search of all columns for each would take 64 times as long
