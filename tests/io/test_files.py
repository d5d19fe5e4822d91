"""Files of samples are read by names: columns of models, layouts, annotated matrices, wide tables."""

import json
import re
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from consilience import CoRegularizedRidgeClassifier, PerView, Views
from consilience.io import read_layout, read_samples, read_stream
from consilience.io._arrow import _Rows

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
    assert read.X.sample_names.tolist() == ["x", "y", "z"]


def test_text_next_to_numbers_is_one_column_per_category_in_one_of_several_files(tmp_path):
    (tmp_path / "blood.csv").write_text("id,n,sex,note\n1,1.0,F,\n2,2.0,M,\n3,,,\n")
    (tmp_path / "scan.csv").write_text("id,a\n3,1\n1,2\n2,3\n")
    X = read_samples([tmp_path / "blood.csv", tmp_path / "scan.csv"], ids="id").X
    assert X.feature_names == {"blood": ("n", "sex=F", "sex=M", "note"), "scan": ("a",)}
    np.testing.assert_array_equal(X["blood"][:2, :3], [[1, 1, 0], [2, 0, 1]])
    np.testing.assert_array_equal(X["scan"], [[2], [3], [1]])
    assert X.present("blood").tolist() == [True, True, False]


def test_only_categories_of_the_only_file_belong_to_its_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,sex,report\n" + "".join(f"{i},{'FM'[i % 2]},word {i}\n" for i in range(8)))
    assert read_samples([path]).X.feature_names == {"t": ("n", "sex=F", "sex=M"), "report": ("report",)}


STAGES = ["III", "II", "I", "IV"]  # the last one has no sample
CLINICAL = pd.DataFrame({
    "age": np.random.default_rng(1).normal(size=N),
    "stage": pd.Categorical(["II", "I", None, "III"] * (N // 4), STAGES),
    "grade": pd.Categorical([10, 2] * (N // 2)), "smoker": pd.array([True, False, None] * (N // 3), dtype="boolean"),
}, index=pd.Index([f"p{k}" for k in range(N)], name="who"))  # fmt: skip
WRITERS = {
    "clinical.csv": lambda path: CLINICAL.to_csv(path),
    "clinical.parquet": lambda path: CLINICAL.to_parquet(path),
    "clinical.feather": lambda path: CLINICAL.reset_index().to_feather(path),
    "clinical.arrow": lambda path: pl.from_pandas(
        CLINICAL.reset_index().astype({"grade": str}), schema_overrides={"stage": pl.Enum(STAGES)}
    ).write_ipc(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_files_give_the_columns_that_frames_give(name, tmp_path):
    WRITERS[name](tmp_path / name)
    X = read_samples([tmp_path / name], ids="who").X
    expected = Views(clinical=CLINICAL)
    if name.endswith(".csv"):  # text lists no categories, and a grade is a number
        expected = Views(clinical=CLINICAL.astype({"stage": object, "grade": float}))
    elif name.endswith(".arrow"):  # polars has strings as categories only
        expected = Views(clinical=CLINICAL.astype({"grade": str}))
    assert (X.feature_names, X.categories) == (expected.feature_names, expected.categories)
    np.testing.assert_array_equal(X["clinical"], expected["clinical"])
    assert X.sample_names.tolist() == CLINICAL.index.tolist()


@pytest.mark.parametrize("name", ["clinical.csv", "clinical.parquet", "clinical.feather"])
def test_new_files_are_encoded_by_the_categories_of_the_model(name, tmp_path):
    frame = CLINICAL.drop(columns="smoker").dropna()
    labels = np.where(frame["age"] > 0, "p", "q")
    model = CoRegularizedRidgeClassifier().fit({"clinical": frame}, labels)
    expected = pd.Series(model.decision_function({"clinical": frame}), index=frame.index)
    for rows in (slice(0, 1), slice(1, 4), slice(None)):
        new = frame.astype({"stage": object})[rows].reset_index()
        {"csv": new.to_csv, "parquet": new.to_parquet, "feather": new.to_feather}[name.split(".")[1]](tmp_path / name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X = read_samples([tmp_path / name], ids="who", known=model._known).X
            np.testing.assert_allclose(model.decision_function(X), expected[X.sample_names])
    (tmp_path / "few.csv").write_text("who,grade,stage,age\nx,2,,0.5\ny,10,V,0.1\n")
    X = read_samples([tmp_path / "few.csv"], ids="who", known=model._known).X
    transform = PerView("passthrough").fit({"clinical": frame})
    with pytest.warns(UserWarning, match="1 sample has the category 'stage=V', which no training sample had"):
        found = transform.transform(X)["clinical"]
    np.testing.assert_array_equal(found, [[0.5, *[np.nan] * 4, 1, 0], [0.1, 0, 0, 0, 0, 0, 1]])


def test_categories_that_are_read_as_missing_are_no_columns(tmp_path):
    CLINICAL.to_parquet(tmp_path / "clinical.parquet")
    with pytest.warns(UserWarning, match=r"6 cells of 1 column in 'clinical.parquet' \(stage\) are read as missing"):
        X = read_samples([tmp_path / "clinical.parquet"], ids="who", na_values=["III"]).X
    assert X.categories["clinical"]["stage"] == ("II", "I", "IV")


def test_a_file_of_several_with_categories_alone_is_one_view(tmp_path):
    (tmp_path / "clinical.csv").write_text("id,sex,stage\n1,F,II\n2,M,I\n3,F,I\n4,F,I\n")
    (tmp_path / "scan.csv").write_text("id,a\n3,1\n1,2\n2,3\n4,3\n")
    X = read_samples([tmp_path / "clinical.csv", tmp_path / "scan.csv"], ids="id").X
    assert X.categories == {"clinical": {"sex": ("F", "M"), "stage": ("I", "II")}}
    np.testing.assert_array_equal(X["clinical"][:2], [[1, 0, 0, 1], [0, 1, 1, 0]])


def test_a_stream_does_not_know_categories(tmp_path):
    path = tmp_path / "t.parquet"
    CLINICAL[["age", "grade"]].assign(y=LABELS).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"Column 'grade' of 't.parquet' has a categorical type, and the categ"):
        next(read_stream(path))
    CLINICAL[["age", "stage"]].assign(y=LABELS).to_parquet(path, index=False)
    X, _ = next(read_stream(path))  # strings are a view by themselves
    assert X["stage"].tolist() == CLINICAL["stage"].astype(object).where(CLINICAL["stage"].notna(), None).tolist()
    with pytest.raises(ValueError, match=r"Column 'stage' of 't.parquet' has no numbers, and the categories of a str"):
        next(read_stream(path, views={"v": ["age", "stage"]}))


@pytest.mark.parametrize("views", [None, {"v": ["n"]}, {"v": ["n", "m"]}])
def test_numbers_with_unreadable_cells_are_refused(views, tmp_path):
    (tmp_path / "t.csv").write_text("n,m\n1,1\n2,2\n<0.5,3\n4,4\nerror,5\n")
    message = r"'t.csv': column 'n' has numbers, and 2 cells that cannot be read as numbers: '<0.5', 'error'"
    with pytest.raises(ValueError, match=message):
        read_samples([tmp_path / "t.csv"], views=views)


def test_samples_without_a_view_are_left_out_by_name(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,b,y\np1,1,2,0\np2,,,1\np3,3,,1\n")
    with pytest.warns(UserWarning, match=r"1 of 3 samples have no view at all and are left out: 'p2'"):
        read = read_samples([tmp_path / "t.csv"], target="y", ids="id", columns=["y"])
    assert read.X.sample_names.tolist() == ["p1", "p3"]
    assert read.y.tolist() == read.columns["y"].tolist() == [0, 1]


# -- names of samples
def two_files(folder, first, second):
    (folder / "one.csv").write_text("id,a\n" + "".join(f"{name},{k}\n" for k, name in enumerate(first)))
    lines = [json.dumps({"id": name, "b": k}) for k, name in enumerate(second)]
    (folder / "two.jsonl").write_text("\n".join(lines))
    return read_samples([folder / "one.csv", folder / "two.jsonl"], ids="id").X


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (["1", "2"], [2, 1], ["1", "2"]),
        (["1", "2"], ["2", "1"], ["1", "2"]),
        (["1", "x"], [1.0, "x"], ["1", "x"]),
        (["1234567", "2"], ["2", 1234567.0], ["1234567", "2"]),
    ],
)
def test_names_match_as_numbers_and_as_text(first, second, names, tmp_path):
    X = two_files(tmp_path, first, second)
    assert X.sample_names.tolist() == names
    for view, own in (("one", first), ("two", second)):
        places = [names.index(str(name).removesuffix(".0")) for name in own]
        np.testing.assert_array_equal(X[view][places, 0], range(len(own)))


NAME_ERRORS = {
    "'one.csv' has the sample 'a' more than once": (["a", "a"], ["a"]),
    "'two.jsonl' has the sample '1' more than once": (["1", "x"], [1, "1"]),
    "'01' of 'one.csv' may be '1' of 'two.jsonl': they differ only in zeros": (["01", "2"], [1, 2]),
    "'1.0' of 'one.csv' may be '1' of 'two.jsonl', and 1 more names": (["1.0", "2.0"], [1, 2]),
    "No sample of 'one.csv' is in another file: it has '1.10', the others '1.1', for": (
        ["1.10", "1.20"],
        ["1.1", "1.2"],
    ),
    "'two.jsonl' has 1 of 2 rows without a name in column 'id', the first after 1 others": (["a", "b"], ["a", None]),
}


@pytest.mark.parametrize("message", NAME_ERRORS)
def test_names_that_cannot_match_get_a_sentence(message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        two_files(tmp_path, *NAME_ERRORS[message])


def test_files_without_names_cannot_be_matched(tmp_path):
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("a\n1\n2\n")
    with pytest.raises(ValueError, match=r"Several files are matched by .*, and 'one.csv' has no names. Give"):
        read_samples([tmp_path / "one.csv", tmp_path / "two.csv"])


def test_a_target_in_two_files_is_refused(tmp_path):
    for name, column in (("one", "a"), ("two", "b")):
        (tmp_path / f"{name}.csv").write_text(f"id,{column},y\np,1,0\nq,2,1\n")
    with pytest.raises(ValueError, match=r"Several files have the column 'y': 'one.csv', 'two.csv'. Keep one."):
        read_samples([tmp_path / "one.csv", tmp_path / "two.csv"], target="y", ids="id")


def test_the_index_of_pandas_names_the_samples(tmp_path):
    first = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["p1", "p2", "p3"])
    second = pd.DataFrame({"b": [1.0, 2.0, 3.0]}, index=["p3", "p1", "p2"])
    first.to_csv(tmp_path / "one.csv")
    second.to_parquet(tmp_path / "two.parquet")
    X = read_samples([tmp_path / "one.csv", tmp_path / "two.parquet"]).X
    assert X.sample_names.tolist() == ["p1", "p2", "p3"]
    np.testing.assert_array_equal(np.hstack([X["one"], X["two"]]), [[1, 2], [2, 3], [3, 1]])


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
    assert read.feature_names == {"other": ("a__2", "a__1")}  # the one view of a model may have another name


def test_names_with_the_prefix_of_their_view_are_found_without_it(data):
    read = read_samples([data], known={"a": numbers("2", "1"), "b": numbers("1")}).X
    assert read.feature_names == {"a": ("2", "1"), "b": ("1",)}
    np.testing.assert_allclose(read["a"], FRAME[["a__2", "a__1"]])
    data.write_text("c__sex,c__n,b__1\n1,2,3\n2,3,4\n")
    read = read_samples([data], known={"c": numbers("n", "sex=1", "sex=3")}).X
    assert read.feature_names == {"c": ("n", "sex=1", "sex=2")}


def test_columns_that_a_file_lacks_are_left_to_the_estimator(data):
    known = {"a": numbers("a__1", "a__2", "a__3")}
    read = read_samples([data], known=known).X
    assert read.feature_names == {"a": ("a__1", "a__2")}
    fitted = CoRegularizedRidgeClassifier().fit({"a": FRAME.assign(a__3=0.5)[["a__1", "a__2", "a__3"]]}, LABELS)
    with pytest.raises(ValueError, match=r"View 'a' has no column '(a__)?3'.* \(1 of 3 columns are missing\)"):
        fitted.predict(read)
    with pytest.warns(UserWarning, match=r"View 'a' lacks 1 of 3 columns"):
        filled = fitted.set_params(missing_columns="fill").predict(read)
    whole = fitted.predict({"a": FRAME.assign(a__3=0.5)[["a__1", "a__2", "a__3"]]})
    assert filled.tolist() == whole.tolist()


KNOWN_ERRORS = {
    "The model was fitted on the view 'q' with the column 'q1', which 't.csv' does not have: it has 'a__1', 'a__2'":
        {"q": numbers("q1", "q2")},
    "The model was fitted on the views 'q', 'r', none of which is in 't.csv'":
        {"q": numbers("q1"), "r": numbers(width=2)},
    "Column 'a__1' of 't.csv' may be of the view 'u' or of 'v': the model knows it in both.":
        {"u": numbers("a__1", "a__2"), "v": numbers("b__1", "a__1")},
    "View 'u' has 3 columns in 't.csv', but the model was fitted on 2, without names.": {"u": numbers(width=2)},
    "View 'a' has 2 columns in 't.csv', but the model was fitted on 5, without names.":
        {"a": numbers(width=5), "b": numbers(width=1)},
    "Column 'y' of 't.csv' has no numbers, but 'p', for example. The model was fitted on numbers in this column":
        {"a": numbers("a__1", "y")},
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


def test_a_view_of_one_column_without_a_name_is_the_column_of_its_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,w\n1,2,3,x\n4,5,6,z\n")
    known = {"a": numbers(width=1), "c": numbers(width=1), "w": ("objects", None, None)}
    read = read_samples([path], known=known).X
    assert (read["a"].tolist(), read["c"].tolist(), read["w"].tolist()) == ([[1], [4]], [[3], [6]], ["x", "z"])
    # a column is not a view of several
    with pytest.raises(ValueError, match=r"none of which is in 't\.csv'"):
        read_samples([path], known={"a": numbers(width=2), "c": numbers(width=2)})


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
    assert two.feature_names == {"one": ("g1", "g2", "g3")}
    assert two.sample_names.tolist() == [f"s{i}" for i in range(N)]
    with pytest.raises(ValueError, match=r"'twice.h5ad': View 'twice' has several columns of one name: g1. "):
        read_samples([tmp_path / "twice.h5ad"], target="y", known=known)


@pytest.mark.filterwarnings("ignore")
def test_samples_that_a_sparse_file_does_not_have_are_missing_and_not_zero(tmp_path):
    annotated(tmp_path / "genes.h5ad")
    (tmp_path / "age.csv").write_text("id,age\nother,50\n" + "".join(f"s{i},{i}\n" for i in range(1, N)))
    X = read_samples([tmp_path / "genes.h5ad", tmp_path / "age.csv"], ids="id").X
    places = {name: k for k, name in enumerate(X.sample_names.tolist())}
    assert np.flatnonzero(~X.present("genes")).tolist() == [places["other"]]
    assert np.flatnonzero(~X.present("age")).tolist() == [places["s0"]]


@pytest.mark.filterwarnings("ignore")
def test_indices_of_a_sparse_file_that_leave_the_matrix_are_refused_before_they_are_used(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    path = tmp_path / "evil.h5ad"
    annotated(path)
    with h5py.File(path, "r+") as file:
        file["X/indices"][:] = np.full(len(file["X/indices"]), 40_000_000)
    with pytest.raises(ValueError, match=r"'evil.h5ad': View 'evil' is a damaged .* index 40000000"):
        read_samples([path], target="y")
    with pytest.raises(ValueError, match=r"'evil.h5ad': .* index 40000000"):
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
    place = {name: k for k, name in enumerate(cells.X.sample_names.tolist())}
    np.testing.assert_allclose(cells.X["rna"][[place[c] for c in obs.index]], rna.X)
    np.testing.assert_allclose(
        cells.X["protein"][[place[c] for c in ("c3", "c1", "c4")]].toarray(), protein.X.toarray()
    )
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
    assert samples.X.sample_names.tolist() == ["a", "b"]


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
    "gives the view 'a' as 5.5; give a column name, a pattern such as 'mfcc_*', or a list of them, as strings.": (
        b"[views]\na = 5.5\n"
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
        monkeypatch.setattr("consilience.io._arrow._load_parquet", lambda *_, table=table: [_Rows(table, "'t'", 0)])
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


def test_names_and_groups_are_text_as_written(tmp_path):
    names = ["1.1", "1.10", "2e3", "2000", "+7", "7", "007", "123456789012345678901"]
    (tmp_path / "t.csv").write_text("id,site,a\n" + "".join(f"{name},{name},{k}\n" for k, name in enumerate(names)))
    read = read_samples([tmp_path / "t.csv"], ids="id", groups="site")
    assert read.X.sample_names.tolist() == read.groups.tolist() == names
    assert next(read_stream(tmp_path / "t.csv", ids="id", target="site"))[0].sample_names.tolist() == names
    (tmp_path / "t.csv").write_text(",a\n" + "".join(f"00{k},{k}\n" for k in range(3)))  # not row numbers
    assert read_samples([tmp_path / "t.csv"]).X.sample_names.tolist() == ["000", "001", "002"]


LONG = 123456789012345678
TARGETS = {  # cells of a text file, and the target without a task, for classification and for regression
    "integers": (["1", "2", ""], [1, 2, None], [1, 2, None], [1.0, 2.0]),
    "long integers": ([LONG, LONG + 1, ""], [LONG, LONG + 1, None], [LONG, LONG + 1, None], [float(LONG)] * 2),
    "zeros in front": (["01", "1", "2"], ["01", "1", "2"], ["01", "1", "2"], [1.0, 1.0, 2.0]),
    "signs": (["+7", "7", "2e3"], ["+7", "7", "2e3"], ["+7", "7", "2e3"], [7.0, 7.0, 2000.0]),
    "whole": (["1.0", "2.0", "1.0"], [1.0, 2.0, 1.0], [1.0, 2.0, 1.0], [1.0, 2.0, 1.0]),
    "versions": (["1.1", "1.10", "1.2"], [1.1, 1.1, 1.2], ["1.1", "1.10", "1.2"], [1.1, 1.1, 1.2]),
    "true": (["true", "false", ""], [True, False, None], [True, False, None], None),
}


@pytest.mark.parametrize("name", TARGETS)
def test_classes_are_as_written_and_targets_of_regression_are_numbers(name, tmp_path):
    cells, *expected = TARGETS[name]
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    for task, values in zip((None, "classification", "regression"), expected, strict=True):
        if values is not None:
            y = read_samples([path], target="y", task=task).y
            assert [repr(value) for value in y.tolist() if value == value] == list(map(repr, values))
            labels = next(read_stream(path, task=task))[1]
            assert [repr(value) for value in labels if value == value] == list(map(repr, values))


def test_a_target_of_regression_that_is_text_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2.5\n2,n.d.\n")
    with pytest.raises(ValueError, match=r"Column 'y' is the target of a regression.*'n.d.'.* `na_values` \(--na\)"):
        read_samples([tmp_path / "t.csv"], target="y", task="regression")
    for read in (read_samples, lambda path, **own: list(read_stream(path, **own))):
        with pytest.raises(ValueError, match="`task` must be 'classification' or 'regression'; got 'ranking'"):
            read(tmp_path / "t.csv", target="y", task="ranking")


@pytest.mark.parametrize("name", ["t.xlsx", "t.parquet", "t.jsonl", "t.csv"])
def test_integers_beside_missing_cells_stay_integers(name, tmp_path):
    long = LONG if name != "t.xlsx" else 123456789012345  # the digits of a number in Excel
    site, y = pd.array([long, long + 1, None], dtype="Int64"), pd.array([1, None, 2], dtype="Int64")
    frame = pd.DataFrame({"id": [7, 8, 9], "a": [1.0, 2, 3], "site": site, "y": y})
    if name == "t.xlsx":
        frame.to_excel(tmp_path / name, index=False)
    elif name == "t.parquet":
        frame.to_parquet(tmp_path / name)
    elif name == "t.jsonl":
        frame.to_json(tmp_path / name, orient="records", lines=True)
    else:
        frame.to_csv(tmp_path / name, index=False)
    read = read_samples([tmp_path / name], ids="id", groups="site", target="y")
    assert read.y.tolist() == [1, None, 2]
    assert [str(site) for site in read.groups] == [str(long), str(long + 1), "None"]
    (tmp_path / "more.csv").write_text("id,b\n9,1\n8,2\n7,3\n")
    X = read_samples([tmp_path / name, tmp_path / "more.csv"], ids="id", target="y", groups="site").X
    assert dict(zip(X.sample_names.tolist(), X["more"][:, 0], strict=True)) == {"7": 3.0, "8": 2.0, "9": 1.0}
    (tmp_path / "more.csv").write_text("id,b\n009,1\n8,2\n7,3\n")
    with pytest.raises(ValueError, match=r"'9' of 't.*' may be '009' of 'more.csv'"):
        read_samples([tmp_path / name, tmp_path / "more.csv"], ids="id", target="y", groups="site")


def test_integers_beyond_int64_stay_apart(tmp_path):
    large = [2**63 + 1, 2**63 + 2, 5]
    pd.DataFrame({"id": np.array(large, dtype=np.uint64), "a": 0.5, "y": [1, 2, 1]}).to_parquet(tmp_path / "t.parquet")
    pd.DataFrame({"id": large, "b": range(3)}).to_csv(tmp_path / "t2.csv", index=False)
    assert read_samples([tmp_path / "t.parquet"], ids="id").X.sample_names.tolist() == large
    X = read_samples([tmp_path / "t.parquet", tmp_path / "t2.csv"], ids="id", target="y").X
    assert X.sample_names.tolist() == list(map(str, large))


# -- samples that some files do not have
def three_files(folder, *names):
    paths = [folder / f"{view}.csv" for view in "abc"[: len(names)]]
    for path, own in zip(paths, names, strict=True):
        path.write_text(f"id,{path.stem}1\n" + "".join(f"{name},{k}\n" for k, name in enumerate(own)))
    return paths


PEOPLE = [f"p{k}" for k in range(1, 41)]
SPELLED = {
    "'p41' of 'a.csv' may be 'P41' of 'b.csv'": ([*PEOPLE, "p41"], [*PEOPLE, "P41"]),
    "'p41' of 'a.csv' may be 'p041' of 'b.csv'": ([*PEOPLE, "p41"], [*PEOPLE, "p041"]),
    "'p 41' of 'a.csv' may be 'p41' of 'b.csv'": ([*PEOPLE, "p 41"], [*PEOPLE, "p41"]),
    "'p21-01A' of 'b.csv' may be 'p21' of 'a.csv', and 19 more names": (
        PEOPLE, PEOPLE[:20] + [f"{name}-01A" for name in PEOPLE[20:]]),
    "Only 1 of 40 samples of 'a.csv' is in another file: it has 'p1', the others 'q1', for example. Write the": (
        PEOPLE, [PEOPLE[-1], "q1", "q2"]),
}  # fmt: skip


@pytest.mark.parametrize("message", SPELLED)
def test_names_that_match_in_part_by_mistake_are_refused(message, tmp_path):
    paths = three_files(tmp_path, *SPELLED[message])
    with pytest.raises(ValueError, match=re.escape(message)):
        read_samples(paths, ids="id")
    every = {name for names in SPELLED[message] for name in names}
    with pytest.warns(UserWarning, match="are in all 3 files"):  # a file that lists all of them
        X = read_samples(three_files(tmp_path, *SPELLED[message], every), ids="id").X
    assert set(X.sample_names) == every


def test_samples_that_some_files_do_not_have_are_counted(tmp_path):
    paths = three_files(tmp_path, PEOPLE, PEOPLE[:24], [*PEOPLE[10:], "new"])
    message = (
        r"do not have the same 41 samples: 14 are in all 3 files, 26 in some \('p1' is not in 'c.csv' and 25 more\), "
        r"1 only in one \('new' of 'c.csv'\)"
    )
    with pytest.warns(UserWarning, match=message):
        X = read_samples(paths, ids="id").X
    assert [int(X.present(view).sum()) for view in X.names] == [40, 24, 31]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_samples(three_files(tmp_path, PEOPLE, PEOPLE[::-1]), ids="id")


def test_the_names_of_new_samples_may_be_in_a_column_without_a_name(tmp_path):
    (tmp_path / "one.csv").write_text(",a\ns1,1\ns2,2\n")
    known = {"one": numbers("a")}
    assert read_samples([tmp_path / "one.csv"], ids="patient", known=known).X.sample_names.tolist() == ["s1", "s2"]
    (tmp_path / "two.csv").write_text(",b\ns2,1\ns1,2\n")
    X = read_samples(
        [tmp_path / "one.csv", tmp_path / "two.csv"], ids="patient", known={**known, "two": numbers("b")}
    ).X
    np.testing.assert_array_equal(X["two"], [[2], [1]])
    with pytest.raises(ValueError, match="has no column 'patient'"):
        read_samples([tmp_path / "one.csv"], ids="patient")


def test_a_layout_that_names_no_column_of_a_file_is_an_error(tmp_path):
    paths = three_files(tmp_path, PEOPLE, PEOPLE)
    with pytest.raises(ValueError, match=r"`views` \(--views\) names no column of 'b.csv', which has 'b1'. Name"):
        read_samples(paths, ids="id", views={"a": "a1"})
    assert read_samples(paths, ids="id", views={"a": "a1"}, target="b1").X.names == ("a",)


def test_columns_of_codes_become_categories_on_request(tmp_path):
    (tmp_path / "t.csv").write_text("age,stage,y\n50,1,p\n60,3,q\n70,1,p\n80,3,q\n")
    pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        X = read_samples([tmp_path / name], target="y", categories=["stage"]).X
        assert X.feature_names == {"t": ("age", "stage=1", "stage=3")}
        model = CoRegularizedRidgeClassifier().fit(X, ["p", "q", "p", "q"])
        again = read_samples([tmp_path / name], known=model._known).X
        np.testing.assert_allclose(model.decision_function(again), model.decision_function(X))
    with pytest.raises(ValueError, match=r"No column 'grade' of `categories` \(--category\) is in 't.csv'"):
        read_samples([tmp_path / "t.csv"], target="y", categories=["grade"])


def test_a_target_with_an_index_of_integers_is_matched_to_names_of_text(tmp_path):
    (tmp_path / "t.csv").write_text("id,a\n3,1.0\n1,-1.0\n2,-2.0\n")
    X = read_samples([tmp_path / "t.csv"], ids="id").X
    model = CoRegularizedRidgeClassifier(alpha=1e-3).fit(X, pd.Series(["q", "q", "p"], index=[1, 2, 3]))
    assert model.predict(X).tolist() == ["p", "q", "q"]
    with pytest.raises(ValueError, match=r"The index of y .* is not that of the samples"):
        model.fit(X, pd.Series(["q", "q", "p"], index=[0, 1, 2]))
