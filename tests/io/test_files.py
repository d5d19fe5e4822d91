"""Files of samples are read by names, or refused in one sentence."""

import re
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from consilience.io import read_layout, read_samples, read_stream

# -- files that are empty, cut off or damaged
N = 24
LABELS = np.array(["p", "q"] * (N // 2))


def frame():
    rng = np.random.default_rng(0)
    columns = {"a__1": rng.normal(size=N), "a__2": rng.normal(size=N), "b__1": rng.normal(size=N)}
    return pd.DataFrame(columns | {"y": LABELS})


def annotated(path, genes=("g1", "g2", "g3"), X=None):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    X = sp.csr_matrix(np.random.default_rng(0).random((N, len(genes)))) if X is None else X
    obs = pd.DataFrame({"y": LABELS}, index=[f"s{i}" for i in range(N)])
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=list(genes))).write_h5ad(path)


WRITERS = {
    "csv": lambda path: frame().to_csv(path, index=False),
    "tsv": lambda path: frame().to_csv(path, index=False, sep="\t"),
    "parquet": lambda path: frame().to_parquet(path),
    "npz": lambda path: np.savez(path, a=np.ones((N, 2)), y=LABELS),
    "libsvm": lambda path: path.write_text("".join(f"{i % 2} 1:{i} 3:1\n" for i in range(N))),
    "h5ad": annotated,
    "jsonl": lambda path: path.write_text("".join(f'{{"a": [{i}, 1.0], "y": {i % 2}}}\n' for i in range(N))),
}
CUTS = {
    "empty": lambda whole: b"",
    "one byte": lambda whole: b"\x80",
    "half": lambda whole: whole[: len(whole) // 2 + 3],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_cut_file_gets_a_sentence_that_names_it(kind, cut, tmp_path):
    path = tmp_path / f"data.{kind}"
    WRITERS[kind](path)
    path.write_bytes(CUTS[cut](path.read_bytes()))
    if kind == "libsvm" and cut == "half":
        path.write_bytes(path.read_bytes() + b"1 2")  # a row without a value
    if kind != "jsonl":
        with pytest.raises(ValueError, match=f"data.{kind}"):
            read_samples([path], target="y")
    if kind in ("csv", "tsv", "parquet", "libsvm", "jsonl"):
        if cut == "empty" and kind in ("libsvm", "jsonl"):  # `stream` says that there are no samples
            assert list(read_stream(path)) == []
            return
        with pytest.raises(ValueError, match=f"data.{kind}"):
            list(read_stream(path))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WRITERS)
def test_whole_files_are_read(kind, tmp_path):
    path = tmp_path / f"data.{kind}"
    WRITERS[kind](path)
    if kind != "jsonl":
        assert len(read_samples([path], target="y").X) == N
    if kind not in ("npz", "h5ad"):
        assert sum(len(labels) for _, labels in read_stream(path)) == N


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


def test_control_codes_of_a_damaged_file_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n\x1b[2J\x07\n")
    with pytest.raises(ValueError, match=r"'t.csv' cannot be read as CSV") as raised:
        read_samples([tmp_path / "t.csv"])
    assert str(raised.value).isprintable()


ODD_TABLES = {
    "'t.csv' has two columns named 'a'. Rename or remove one of them.": ("csv", b"a,a,y\n1,2,x\n"),
    "'t.csv' is not encoded in UTF-8: column 'a' has other bytes. Save it as UTF-8.": ("csv", b"a,y\n\xe9,1\n"),
    "'t.csv' is not encoded in UTF-8: In CSV column #1": ("csv", b"a,y\n1,\xe9\n"),
    "'t.csv' is not encoded in UTF-8": ("csv", b"\xe9,y\n1,2\n"),
    "'t.csv' has no samples.": ("csv", b"a,y\n"),
    "Column 'd' of 't.csv' holds date values": ("csv", b"a,d,y\n1,2020-01-01,x\n"),
    "There is no file or folder": ("none", b""),
    "'t.doc' is not a file of samples": ("doc", b""),
}


@pytest.mark.parametrize("message", ODD_TABLES)
def test_odd_tables_get_a_sentence(message, tmp_path):
    kind, content = ODD_TABLES[message]
    path = tmp_path / f"t.{kind}"
    if kind != "none":
        path.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
        read_samples([path], target="y")


def test_two_columns_of_a_name_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0]), pa.array(["x"])], ["a", "a", "y"]), path)
    for read in (lambda: read_samples([path], target="y"), lambda: list(read_stream(path))):
        with pytest.raises(ValueError, match=r"'t.parquet' has two columns named 'a'"):
            read()


def test_row_numbers_that_pandas_wrote_are_no_feature(tmp_path):
    table = frame().iloc[::-1]
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
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2)
    pq.write_table(pa.table({"fixed": fixed, "words": [["a", "b"], ["c", "d"]], "n": [1.0, 2.0]}), path)
    read = read_samples([path]).X
    np.testing.assert_array_equal(read["fixed"], [[1, 2], [3, 4]])
    assert read["words"].tolist() == [["a", "b"], ["c", "d"]]
    pq.write_table(pa.table({"odd": [[1.0], [1.0, 2.0]], "n": [1.0, 2.0]}), path)
    with pytest.raises(ValueError, match=r"Column 'odd' of 't.parquet' has lists of 1 and of 2 numbers"):
        read_samples([path])


def test_vectors_of_an_npz_file(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((3, 2)), who=np.array(["x", "y", "z"]), y=[0, 1, 0], version=np.array(3))
    read = read_samples([path], target="y", ids="who")
    assert read.X.names == ("a",)
    assert read.ids.tolist() == ["x", "y", "z"]
    for odd, message in ((np.array([1j, 2, 3]), "complex"), (np.array(["2020"] * 3, dtype="M8[D]"), "date")):
        np.savez(path, a=np.ones((3, 2)), odd=odd)
        with pytest.raises(ValueError, match=f"Column 'odd' of 't.npz' holds {message} values"):
            read_samples([path])
    np.savez(path, a=np.ones((3, 2)), y=[0, 1])
    with pytest.raises(ValueError, match=r"'y' of 't.npz' has 2 values for 3 samples"):
        read_samples([path], target="y")
    np.savez(path, a=np.ones(3), b=np.ones(2))
    with pytest.raises(ValueError, match=r"'t.npz' has 3 values of 'a' and 2 of 'b'"):
        read_samples([path])


@pytest.mark.filterwarnings("ignore:'two.csv'")
def test_text_that_several_files_leave_out_is_told(tmp_path):
    for name in ("one", "two"):
        pd.DataFrame({"id": [1, 2], "n": [1.0, 2.0], f"note_{name}": ["u", "v"]}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    with pytest.warns(UserWarning, match=r"'one.csv' has columns of text besides numbers: note_one. They are ignored"):
        read_samples([tmp_path / "one.csv", tmp_path / "two.csv"], ids="id")


# -- libsvm
ODD_LIBSVM = {
    "'t.libsvm' has a column with the number 0; libsvm files number columns from 1 on.": "1 0:1\n0 1:2\n",
    "'t.libsvm' has a column with the number 2000000000; numbers up to 67108864 are read.": "1 1:1 2000000000:1\n",
    "'t.libsvm' cannot be read as libsvm: value too large": "1 4000000000:1\n",
    "'t.libsvm' cannot be read as libsvm: Invalid index -1": "1 -1:1\n",
    "'t.libsvm' cannot be read as libsvm: Feature indices": "1 2:1 1:1\n",
    "'t.libsvm' cannot be read as libsvm: Feature indices ": "1 2:1 2:1\n",
    "'t.libsvm' cannot be read as libsvm: could not convert": "1 1:x\n",
    "'t.libsvm' cannot be read as libsvm: invalid literal": "1 x:1\n",
}


@pytest.mark.parametrize("message", ODD_LIBSVM)
def test_odd_libsvm_gets_a_sentence_from_both_readers(message, tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text(ODD_LIBSVM[message])
    for read in (lambda: read_samples([path]), lambda: list(read_stream(path))):
        with pytest.raises(ValueError, match=re.escape(message)):
            read()


def test_columns_of_libsvm_files_are_never_shifted(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("1 2:5\n0 3:6\n")  # no row has the first column
    np.testing.assert_array_equal(read_samples([path]).X["t"].toarray(), [[0, 5, 0], [0, 0, 6]])
    np.testing.assert_array_equal(next(read_stream(path))[0]["view0"].toarray(), [[0, 5, 0], [0, 0, 6]])


# -- what a fitted model knows
def test_columns_are_found_by_name_in_any_order(tmp_path):
    table = frame()
    table[["b__1", "y", "a__2", "a__1"]].assign(more="text", day="2020-01-01").to_csv(tmp_path / "t.csv", index=False)
    known = {"a": ("numbers", 2, ("a__1", "a__2")), "b": ("numbers", 1, ("b__1",))}
    read = read_samples([tmp_path / "t.csv"], known=known).X
    np.testing.assert_allclose(read["a"], table[["a__1", "a__2"]])
    assert read.feature_names == {"a": ("a__1", "a__2"), "b": ("b__1",)}
    read = read_samples([tmp_path / "t.csv"], known={"other": ("numbers", 1, ("a__2",))}, views={"v": ["a__*"]}).X
    np.testing.assert_allclose(read["other"], table[["a__2"]])  # the one view of a model may have another name


KNOWN_ERRORS = {
    "View 'a' has no column 'a__3', which the model was fitted on, in 't.csv'. It has a__1, a__2, b__1, y.": {
        "a": ("numbers", 3, ("a__1", "a__2", "a__3"))
    },
    "The model was fitted on the view 'q' with the column 'q1', which 't.csv' does not have: it has a__1, a__2, b__1": {
        "q": ("numbers", 2, ("q1", "q2"))
    },
    "The model was fitted on the views 'q', 'r', none of which is in 't.csv'": {
        "q": ("numbers", 1, ("q1",)),
        "r": ("numbers", 2, None),
    },
    "Column 'a__1' of 't.csv' may be of the view 'u' or of 'v': the model knows it in both.": {
        "u": ("numbers", 2, ("a__1", "a__2")),
        "v": ("numbers", 2, ("b__1", "a__1")),
    },
    "View 'u' has 3 columns in 't.csv', but the model was fitted on 2, without names.": {"u": ("numbers", 2, None)},
    "View 'a' has 2 columns in 't.csv', but the model was fitted on 5, without names.": {
        "a": ("numbers", 5, None),
        "b": ("numbers", 1, None),
    },
    "Column 'y' of 't.csv' has no numbers.": {"a": ("numbers", 2, ("a__1", "y"))},
}


@pytest.mark.parametrize("message", KNOWN_ERRORS)
def test_files_that_do_not_fit_a_model_get_a_sentence(message, tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_samples([tmp_path / "t.csv"], known=KNOWN_ERRORS[message])


def test_the_view_called_like_a_file_has_its_columns_and_the_others_theirs(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "a.csv", index=False)
    known = {"b": ("numbers", 1, ("b__1",)), "a": ("numbers", 2, ("a__1", "a__2")), "c": ("numbers", 1, ("a__2",))}
    read = read_samples([tmp_path / "a.csv"], known=known).X
    assert set(read.names) == {"a", "b"}  # c has a column of a, whose file this is


def test_views_without_column_names_are_found_by_their_own(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((N, 2)), b=np.zeros((N, 3)), y=LABELS)
    frame().to_csv(tmp_path / "t.csv", index=False)
    known = {"a": ("numbers", 2, None), "c": ("numbers", 2, None)}
    assert read_samples([path], known=known).X.names == ("a",)
    assert read_samples([tmp_path / "t.csv"], known={"a": ("numbers", 2, None), "c": ("", None, None)}).X.names == (
        "a",
    )
    only = read_samples([tmp_path / "t.csv"], known={"q": ("numbers", 3, None)}).X
    np.testing.assert_allclose(only["q"], frame()[["a__1", "a__2", "b__1"]])
    words = read_samples([tmp_path / "t.csv"], known={"q": ("objects", 1, None)}).X
    assert words["q"].tolist() == LABELS.tolist()


def test_text_stays_text_where_a_file_has_digits_in_it(tmp_path):
    pd.DataFrame({"word": ["007", "008"], "n": [1.0, 2.0]}).to_csv(tmp_path / "t.csv", index=False)
    known = {"text": ("objects", 1, ("word",)), "n": ("numbers", 1, ("n",))}
    assert read_samples([tmp_path / "t.csv"], known=known).X["text"].tolist() == ["007", "008"]


@pytest.mark.filterwarnings("ignore")
def test_annotated_matrices_are_read_by_the_names_of_their_variables(tmp_path):
    Z = np.random.default_rng(0).random((N, 3))
    annotated(tmp_path / "one.h5ad", X=Z)
    annotated(tmp_path / "two.h5ad", ("g3", "g9", "g1", "g2"), sp.csc_matrix(Z[:, [2, 0, 0, 1]]))
    annotated(tmp_path / "twice.h5ad", ("g1", "g1", "g3"))
    one = read_samples([tmp_path / "one.h5ad"], target="y").X
    assert one.feature_names == {"one": ("g1", "g2", "g3")}
    known = {"one": ("numbers", 3, ("g1", "g2", "g3"))}
    two = read_samples([tmp_path / "two.h5ad"], target="y", known=known).X
    np.testing.assert_allclose(two["one"].toarray(), Z)
    with pytest.raises(ValueError, match=r"View 'one' has no column 'g2', .* in 'twice.h5ad'. It has g1, g1-1, g3."):
        read_samples([tmp_path / "twice.h5ad"], target="y", known=known)


# -- layouts
def test_columns_that_a_layout_names_must_be_there(tmp_path):
    frame().rename(columns={"b__1": "b[1]"}).to_csv(tmp_path / "t.csv", index=False)
    read = read_samples([tmp_path / "t.csv"], views={"v": ["a__*", "b[1]"]}, target="y").X  # a name is no pattern
    assert read.feature_names == {"v": ("a__1", "a__2", "b[1]")}
    with pytest.raises(ValueError, match=r"View 'v' has no column 'a__9' in 't.csv'."):
        read_samples([tmp_path / "t.csv"], views={"v": ["a__1", "a__9"]}, target="y")
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


# -- streams
def test_odd_lines_get_a_sentence():
    with pytest.raises(ValueError, match="Line 1 of the stream is not JSON"):
        list(read_stream(["[" * 100_000], format="jsonl"))
    with pytest.raises(ValueError, match="Line 1 of the stream is not a JSON object"):
        list(read_stream(["[1]"], format="jsonl"))
    with pytest.raises(ValueError, match="Column 'a' of the stream"):
        list(read_stream(['{"a": 1' + "0" * 400 + ', "y": 1}'], format="jsonl"))
    with pytest.raises(ValueError, match="The format of the stream must be 'jsonl', 'csv' or 'tsv'; got 'xml'"):
        list(read_stream([], format="xml"))
    assert [label for _, labels in read_stream(["a,y", "1,--5"], format="csv") for label in labels] == ["--5"]


def test_text_in_another_encoding_gets_a_sentence(tmp_path):
    for name, content in (("t.csv", b"a,y\n1,\xe9\n"), ("t.jsonl", b'{"a": [1], "y": "\xe9"}\n')):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"'{name}' is not encoded in UTF-8: .* Save it as UTF-8."):
            list(read_stream(tmp_path / name))


# -- wide tables
def seconds(call):
    best = np.inf
    for _ in range(2):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def test_reading_takes_time_in_proportion_to_the_columns(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
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
