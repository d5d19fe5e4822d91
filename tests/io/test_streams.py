"""Streams of files: the same values as the whole file in every format, or a sentence."""

import gzip
import json
import re
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import dump_svmlight_file

from consilience import Views
from consilience.io import read_samples, read_stream

N = 7
Z = np.random.default_rng(0).normal(size=(N, 3))
LABELS = np.array(["p", "q", "p", "p", "q", "q", "p"])


# -- one reader for files and streams
def as_parquet(path, **columns):
    pq.write_table(pa.table(columns), path)


def as_annotated(path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    obs = pd.DataFrame({"y": LABELS}, index=[f"s{i}" for i in range(N)])
    anndata.AnnData(Z, obs=obs, var=pd.DataFrame(index=["g1", "g2", "g3"])).write_h5ad(path)


def as_folder(path):
    path.mkdir()
    for k in (0, 1, 2):
        rows = slice(3 * k, 3 * k + 3)
        columns = {"a__1": Z[rows, 0], "a__2": Z[rows, 1], "y": LABELS[rows]}
        as_parquet(path / f"part-{k}.parquet", **dict(reversed(columns.items()) if k == 1 else columns.items()))


ROWS = [{"a__1": 1.5, "a__2": 2, "y": 0}, {"a__2": None, "a__1": 3, "y": 1}, {"a__1": -1, "a__2": True, "y": None}]
FILES = {
    "plain.csv": b"a__1,a__2,b__1,y\n1,2.5,3,p\n-4,5e3,6,q\n7,8,9,p\n",
    "tabs.tsv": b"a__1\ta__2\ty\n1\t2.5\tp\n-4\t5e3\tq\n7\t8,5\tp\n".replace(b"8,5", b"8"),
    "one view.csv": b"a,b,y\n1,2.5,p\n-4,5e3,q\n7,8,p\n",
    "missing cells.csv": b"a,b,y\nNA,1,p\n1.5,,q\nNaN,3,p\nn/a,2,\n2,null,q\n",
    "missing views.csv": b"a__1,b__1,b__2,y\n1,,,p\n2,3,4,q\n3,,,p\n",
    "an empty column.csv": b"a,b,y\n1,,p\n2,,q\n3,,p\n",
    "a column that begins empty.csv": b"a,b,y\n1,,p\n2,,q\n3,5,p\n",
    "spaces, signs, infinity.csv": b"a,b,y\n 1 ,+2,p\n2, -3,q\ninf,-inf,p\n",
    "true and false.csv": b"a,b,y\n1,true,p\n2,False,q\n3,,p\n4,TRUE,q\n",
    "prefixes of text.csv": b"a__1,w__1,y\n1,x,p\n3,z,q\n5,,p\n",
    "classes with zeros in front.csv": b"a,y\n1,01\n2,02\n3,1\n4,\n",
    "classes that are whole numbers.csv": b"a,y\n1,0\n2,-1\n3,1\n",
    "classes with gaps.csv": b"a,y\n1,0\n2,\n3,1\n",
    "classes that are true.csv": b"a,y\n1,true\n2,false\n3,\n",
    "targets.csv": b"a,y\n1,0.5\n2,1e3\n3,\n4,-7\n",
    "dates as classes.csv": b"a,y\n1,2020-01-01\n2,2020-01-02\n3,2020-01-01\n",
    "long numbers and others as classes.csv": b"a,y\n1,7\n2,123456789012345678901\n3,0.5\n",
    "long numbers as classes.csv": b"a,y\n1,123456789012345678901\n2,123456789012345678902\n3,5\n",
    "a mark of the encoding.csv": b"\xef\xbb\xbfa,y\n1,p\n2,q\n3,p\n",
    "no last line end.csv": b"a,y\n1,p\n2,q\n3,p",
    "blank lines.csv": b"a,y\n\n1,p\n" + b"\n" * 9 + b"2,q\n3,p\n\n\n",
    "row numbers.csv": b",a,y\n0,1,p\n1,2,q\n2,3,p\n",
    "other letters.csv": "wört,y\né,ä\n漢字,é\n😀,ä\n".encode(),
    "records.jsonl": "\n".join(map(json.dumps, ROWS)).encode() + b"\n\n",
    "lists.jsonl": b'{"v": [1, 2], "w": ["x"], "y": "p"}\n{"v": null, "w": [], "y": "q"}\n{"v": [3, null], "y": "p"}\n',
    "types.parquet": lambda path: as_parquet(
        path, i=pa.array([1, None, 3], pa.int32()), f=pa.array([1.5, 2, None], pa.float32()), b=[True, None, False],
        n=pa.nulls(3), d=pa.array([1, 2, None], pa.decimal128(5, 2)),
        y=pa.array([1, None, 2], pa.int8()), __index_level_0__=[7, 8, 9],
    ),
    "lists.parquet": lambda path: as_parquet(
        path, v=[[1.0, 2.0], None, [3.0, 4.0]], w=[["x"], ["x", "z"], None], y=["p", None, "q"],
        f=pa.FixedSizeListArray.from_arrays(pa.array(range(6)), 2),
    ),
    "booleans.parquet": lambda path: as_parquet(path, a__1=[1.0, 2.0, 3.0], y=[True, None, False]),
    "folder": as_folder,
    "sparse.libsvm": b"1 1:0.5 3:1\n-1 # nothing\n2 2:4\n-1 1:1 5:2\n",
    "sparse.txt": b"0.5 2:1\n1.5 3:1\n",
    "arrays.npz": lambda path: np.savez(path, m=Z, v=Z[:, 0], y=np.arange(N) % 3, other=np.array(3)),
    "annotated.h5ad": as_annotated,
    "words.npz": lambda path: np.savez(path, m=Z, w=LABELS, y=np.arange(N) % 3),
    "lines of Windows.csv": b'word,y\r\n"x\r\nz",p\r\n\r\nz,q\r\nx,p\r\n',
}  # fmt: skip
WITH_TEXT = {  # next to numbers: a file shows whether it is a category, a stream does not
    "quotes.csv": b'word,n,y\n"a,b",1,p\n"two\nlines",2,q\n"say ""hi""",3,p\n5" disk,4,q\n,5,p\n',
    "digits in text.csv": b"word,n,y\nx,1,p\nzz,2,q\nw,5,q\n007,2,q\n",
    "text and prefixes.csv": b"a__1,word,b__1,y\n1,x,2,p\n3,z,4,q\n5,,6,p\n",
    "categories.csv": b"n,word,y\n1,x,p\n3,z,q\n5,x,p\n6,x,p\n",
    "strings.ndjson": b'{"word": "x", "n": 1, "y": 0}\n\n{"n": 2, "word": null, "y": 0}\n{"word": "z", "y": 1}\n',
}  # fmt: skip


def written(path, content):
    content(path) if callable(content) else path.write_bytes(content)
    return path


def both_refuse(path, message, **options):
    """Check that both readers refuse a file in one sentence."""
    for read in (lambda: read_samples([path], target="y", **options), lambda: list(read_stream(path, **options))):
        with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
            read()
        assert str(raised.value).isprintable()  # neither line ends nor control codes reach the terminal


def same(left, right):
    """Whether two lists of labels agree in values and kinds, missing ones among them."""

    def plain(value):
        kind = str if isinstance(value, str) else bool if isinstance(value, bool) else float
        return None if value is None or value != value else (kind, value)

    return list(map(plain, left)) == list(map(plain, right))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", [2, 3, 4096])
@pytest.mark.parametrize("name", FILES)
def test_a_stream_has_the_values_of_the_file(name, chunk, tmp_path):
    path = written(tmp_path / name, FILES[name])
    whole = read_samples([path], target="y")
    parts = list(read_stream(path, chunk=chunk))
    assert all(0 < len(labels) == len(X) <= chunk for X, labels in parts)
    X = Views.concat([part for part, _ in parts])
    if "view0" in X.names:  # which a file names after itself
        X = X.renamed({"view0": path.stem})
    assert X == whole.X
    assert X.feature_names == whole.X.feature_names
    assert same([label for _, labels in parts for label in labels], whole.y.tolist())


@pytest.mark.parametrize("chunk", [2, 4096])
@pytest.mark.parametrize("name", WITH_TEXT)
def test_text_next_to_numbers_in_a_stream_needs_a_layout(name, chunk, tmp_path):
    path = written(tmp_path / name, WITH_TEXT[name])
    with pytest.raises(ValueError, match=f"Column 'word' of '{name}' has text next to columns of numbers"):
        list(read_stream(path, chunk=chunk))
    views = {"w": "word", "v": "a__1" if "prefixes" in name else "n"}
    whole = read_samples([path], target="y", views=views)
    parts = list(read_stream(path, views=views, chunk=chunk))
    assert Views.concat([part for part, _ in parts]) == whole.X
    assert same([label for _, labels in parts for label in labels], whole.y.tolist())
    with pytest.raises(ValueError, match="has no numbers, and the categories of a stream are not known in advance"):
        list(read_stream(path, views={"v": ["word", views["v"]]}, chunk=chunk))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("views", [{"v": ["a*"], "w": "b*"}, "prefix"], ids=["patterns", "prefix"])
def test_layouts_are_the_same(views, tmp_path):
    path = written(tmp_path / "t.csv", b"a__1,b__1,a__2,y\n1,2,3,p\n4,5,6,q\n")
    X = next(read_stream(path, views=views))[0]
    assert X == read_samples([path], target="y", views=views).X
    assert [len(names) for names in X.feature_names.values()] == [2, 1]
    dump_svmlight_file(Z, LABELS == "p", str(tmp_path / "t.svm"), zero_based=False)
    halves = {"left": slice(0, 2), "right": slice(2, 3)}
    sparse = read_samples([tmp_path / "t.svm"], views=halves).X
    assert next(read_stream(tmp_path / "t.svm", views=halves))[0] == sparse
    np.testing.assert_allclose(sparse["left"].toarray(), Z[:, :2])
    both_refuse(path, "View 'left' of 't.csv' is given as a slice; give the names", views=halves)


def test_sample_names_are_not_a_feature(tmp_path):
    path = written(tmp_path / "t.csv", b"id,a,y\n001,1,p\n002,2,q\n")
    names = read_samples([path], target="y", ids="id").X.sample_names.tolist()
    assert names == ["001", "002"]
    for (X, _), name in zip(read_stream(path, ids="id", chunk=1), names, strict=True):
        assert X.feature_names == {"view0": ("a",)}
        assert X.sample_names.tolist() == [name]
    lines = path.read_text().splitlines()
    assert next(read_stream(lines, format="csv", ids="id"))[0].feature_names == {"view0": ("a",)}
    with pytest.raises(ValueError, match=r"No column 'who' is in 't.csv', only 'id', 'a"):
        list(read_stream(path, ids="who"))


def two_of_a_name(path):
    pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 3, ["a", "a", "y"]), path)


# each case: the kind of file, its content, and the sentence of both readers
REFUSED = {
    "csv, a name twice": (b"a,a,y\n1,2,0\n", "'t.csv' has two columns named 'a'. Rename or remove one of them."),
    "parquet, a name twice": (two_of_a_name, "'t.parquet' has two columns named 'a'"),
    "csv, short row": (b"a,b,y\n1,2,0\n1,2\n", "'t.csv' cannot be read as CSV: .* Expected 3 columns, got 2"),
    "csv, blank lines": (b"\n\n", "'t.csv' cannot be read as CSV: .*Empty CSV file"),
    "csv, control codes": (b"a,b\n\x1b[2J\x07\n", "'t.csv' cannot be read as CSV"),
    "csv, dates": (b"d,y\n2020-01-01,0\n", "'t.csv': column 'd' has dates or times. Make numbers of them"),
    "csv, no target": (b"a,b\n1,2\n", "No column 'y' is in 't.csv', only 'a', 'b'. Give the name of a column"),
    "csv, no view": (b"y\n1\n2\n", "No view is left: 't.csv' has no columns besides target and names"),
    "csv, other bytes": (b"a,y\n1,\xe9\n", "'t.csv' is not encoded in UTF-8: (In CSV column #1|invalid)"),
    "csv, other bytes in a view": (
        b"a,y\n\xe9,1\n", "'t.csv' is not encoded in UTF-8: (column 'a' has other bytes|invalid .*). Save it as UTF-8.",
    ),
    "csv, other bytes in a name": (b"\xe9,y\n1,2\n", "'t.csv' is not encoded in UTF-8: .* Save it as UTF-8."),
    "jsonl, other bytes": (b'{"a": [1], "y": "\xe9"}\n', "'t.jsonl' is not encoded in UTF-8: .* Save it as UTF-8."),
    "jsonl, half a line": (b'{"a": [1], "y": 0}\n{', "Line 2 of 't.jsonl' is not JSON"),
    "jsonl, no target": (b'{"a": 1}\n', "No column 'y' is in 't.jsonl', only 'a'."),
    "jsonl, lost target": (b'{"a": 1, "y": 0}\n{"a": 1}\n', "Line 2 of 't.jsonl' has no key 'y'. Write null where"),
    "jsonl, lengths": (
        b'{"v": [1.5], "y": 0}\n{"v": [1, 2], "y": 0}\n',
        "Column 'v' of 't.jsonl' has lists of 1 and of 2 numbers, the latter in line 2. Make them equally long",
    ),
    "parquet, lengths": (
        lambda path: as_parquet(path, odd=[[1.0], [1.0, 2.0]], y=[1, 2]),
        "Column 'odd' of 't.parquet' has lists of 1 and of 2 numbers, the latter in row 1 .counted from 0.",
    ),
    "parquet, empty folder": (lambda path: path.mkdir(), "has no .parquet file"),
    "parquet, packed": (gzip.compress(b"nothing"), "'t.parquet'"),
    "npz, short target": (
        lambda path: np.savez(path, a=np.ones((3, 2)), y=[0, 1]), "'y' of 't.npz' has 2 values for 3 samples",
    ),
    "npz, lengths": (
        lambda path: np.savez(path, a=np.ones(3), b=np.ones(2), y=[0] * 3), "'t.npz' has 3 values of 'a' and 2 of 'b'",
    ),
    "npz, complex": (
        lambda path: np.savez(path, a=np.ones((3, 2)), odd=np.array([1j, 2, 3]), y=np.ones(3)),
        "Column 'odd' of 't.npz' holds complex values",
    ),
    "npz, dates": (
        lambda path: np.savez(path, a=np.ones((3, 2)), odd=np.array(["2020"] * 3, dtype="M8[D]"), y=np.ones(3)),
        "'t.npz': column 'odd' has dates or times",
    ),
    "doc": (b"", "'t.doc' is not a file of samples: its name must end in one of .parquet, .pq, .csv"),
    "none": (lambda path: None, "There is no file or folder"),
    "libsvm, wide": (
        b"1 1:1 2000000000:1\n", "'t.libsvm' has a column with the number 2000000000; numbers up to 67108864 are read.",
    ),
    "libsvm, wider": (b"1 4000000000:1\n", "'t.libsvm' cannot be read as libsvm: value too large"),
    "libsvm, negative": (b"1 -1:1\n", "Line 1 of 't.libsvm' cannot be read as libsvm: Invalid index -1"),
    "libsvm, order": (b"1 2:1 1:1\n", "'t.libsvm' cannot be read as libsvm: Feature indices"),
    "libsvm, repeated": (b"1 2:1 2:1\n", "'t.libsvm' cannot be read as libsvm: Feature indices"),
    "libsvm, no value": (b"1 1:2\n1 2", "'t.libsvm' cannot be read as libsvm"),
    "libsvm, no number": (b"1 1:x\n", "'t.libsvm' cannot be read as libsvm: could not convert"),
    "libsvm, no column": (b"1 x:1\n", "'t.libsvm' cannot be read as libsvm: invalid literal"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_both_refuse_in_one_sentence(case, tmp_path):
    content, message = REFUSED[case]
    both_refuse(written(tmp_path / f"t.{case.partition(',')[0]}", content), message)


CUTS = {"empty": lambda whole: b"", "one byte": lambda whole: b"\x80", "end": lambda whole: whole[:-3]}
WHOLE = ["plain.csv", "tabs.tsv", "types.parquet", "arrays.npz", "sparse.libsvm", "annotated.h5ad", "records.jsonl"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_file_gets_a_sentence_that_names_it(name, cut, tmp_path):
    path = written(tmp_path / name, FILES[name])
    path.write_bytes(CUTS[cut](path.read_bytes()))
    if cut == "empty" and path.suffix in (".libsvm", ".jsonl"):  # `stream` says that there are no samples
        assert list(read_stream(path)) == []
        with pytest.raises(ValueError, match=f"'{name}' has no samples"):
            read_samples([path], target="y")
    else:
        both_refuse(path, name)


# -- lines
def read_lines(lines, format="csv", chunk=64):
    return list(read_stream(lines, format=format, chunk=chunk))


MANY = [f"{v},0" for v in range(64)]
BAD_LINES = {
    "the stream cannot be read as CSV: Empty CSV file": [],
    "the stream cannot be read as CSV: CSV parse error in line 3: Expected 3 columns, got 2: '1,2'": [
        "a,b,y",
        "1,2,0",
        "1,2",
    ],
    "Column 'a' of the stream has the value 'x' in line 66, but numbers in all rows before": ["a,y", *MANY, "x,0"],
    "Column 'a' of the stream has text in line 66, but no value": ["a,b,y", *[",1,0"] * 64, "x,1,0", "x,1,1"],
    "Column 'a' of the stream has the value 'true' in line 66, but numbers": ["a,y", *MANY, "true,0"],
    "Column 'y' of the stream has text in line 66, but numbers in all rows before": ["a,y", *MANY, "1,01"],
    "Column 'y' of the stream has numbers in line 66, but true or false": ["a,y", *["1,true"] * 64, "1,2"],
    "Column 'a' of the stream has the value '0x10' in line 66, but numbers": ["a,y", *MANY, "0x10,0"],
    "Column 'a' of the stream has the value '2' in line 66, but true or false": ["a,y", *["true,0"] * 64, "2,0"],
    "the stream cannot be read as CSV: field larger than field limit": ["a,y", '"' + "x" * 200_000 + '",1'],
}
BAD_RECORDS = {
    "Line 1 of the stream is not JSON": ["[" * 100_000],
    "Line 1 of the stream is not a JSON object": ["[1]"],
    "Column 'a' of the stream": ['{"a": 1' + "0" * 400 + ', "y": 1}'],
    "Column 'v' of the stream has lists of 1 and of 2 numbers, the latter in line 3. Make them equally long. In a": [
        '{"v": [1], "y": 0}', '{"v": null, "w": "x", "y": 0}', '{"v": [1, 2], "y": 0}',
    ],
    "Column 'a' of the stream has the value 'x' in line 2, but numbers in other rows. Write values of one kind.": [
        '{"a": 1, "y": 0}', '{"a": "x", "y": 0}',
    ],
    "Column 'a' of the stream has the value '1' in line 2, but text in other rows. Write values of one kind.": [
        '{"a": "x", "y": 0}', '{"a": 1, "y": 0}',
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", [*BAD_LINES, *BAD_RECORDS])
def test_bad_lines_get_a_sentence(message):
    given = (BAD_LINES[message],) if message in BAD_LINES else (BAD_RECORDS[message], "jsonl", 1)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_lines(*given)


HALFWAY = {  # columns that appear after the first rows
    "a__1": ['{"a__0": 1, "y": 0}', '{"a__0": 2, "a__1": null, "y": 0}', '{"a__0": 2, "a__1": 2, "y": 0}'],
    "x": ['{"b__1": 1, "y": 0}', '{"b__1": 2, "y": 0}', '{"b__1": 2, "x": 3, "y": 0}', '{"b__1": 2, "x": 3, "y": 0}'],
    "x ": ['{"b__1": "w", "y": 0}', '{"b__1": "w", "y": 0}', '{"b__1": "w", "x": "w", "y": 0}'],
    "j": ['{"m": {"k": 1}, "y": 0}', '{"m": {"k": 1}, "y": 0}', '{"m": {"k": 1, "j": 2}, "y": 0}'],
}


@pytest.mark.parametrize("name", HALFWAY)
def test_a_column_that_appears_halfway_is_left_out_with_a_warning(name):
    with pytest.warns(UserWarning, match=f"Column '{name.strip()}' of the stream has no value before row 2 ") as told:
        pieces = read_lines(HALFWAY[name], "jsonl", 1)
    assert len(told) == 1
    assert len({(X.names, tuple(X.feature_names.items())) for X, _ in pieces}) == 1
    assert not any(name.strip() in own for X, _ in pieces for own in X.feature_names.values())


def test_a_column_that_a_layout_names_is_missing_until_it_comes(tmp_path):
    for k in range(3):
        as_parquet(tmp_path / f"{k}.parquet", n__a=[1.0 + k], **({"n__e": [5.0]} if k == 2 else {}), y=[k])
    with pytest.warns(UserWarning, match="Column 'n__e' of '2.parquet' has no value before row 2"):
        left = [X["n"].tolist() for X, _ in read_stream(tmp_path)]
    assert left == [[[1.0]], [[2.0]], [[3.0]]]
    csv = ["n__a,y", "1,0", "2,1", "n__e,y,n__a", "5,2,3"]
    records = ['{"n__a": 1, "y": 0}', '{"n__a": 2, "n__e": null, "y": 1}', '{"n__a": 3, "n__e": 5, "y": 2}']
    for stream, format in ((tmp_path, None), (csv, "csv"), (records, "jsonl")):
        with pytest.warns(UserWarning, match="has no column 'n__e' yet. It is missing until it comes."):
            parts = list(read_stream(stream, views={"n": ["n__a", "n__e"]}, format=format, chunk=1))
        np.testing.assert_array_equal(np.vstack([X["n"] for X, _ in parts]), [[1, np.nan], [2, np.nan], [3, 5]])
        assert [label for _, labels in parts for label in labels] == [0, 1, 2]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("chunk", [2, 3, 100])
def test_the_names_of_columns_may_come_again_in_another_order(on_error, chunk, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('aa,b,y\n1,2,0\n3,4,1\naa,b,y\n5,6,0\n"y","b",aa\n1,8,7\n0,10,9\n')
    reader = read_stream(path, on_error=on_error, chunk=chunk)
    parts = [(X["view0"].tolist(), labels, reader.rows.tolist()) for X, labels in reader]
    assert [row for rows, _, _ in parts for row in rows] == [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]
    assert [label for _, labels, _ in parts for label in labels] == [0, 1, 0, 1, 0]
    assert [row for _, _, rows in parts for row in rows] == [0, 1, 2, 3, 4]
    for start in range(5):
        later = [X["view0"].tolist() for X, _ in read_stream(path, start=start, chunk=chunk)]
        assert [row[0] for rows in later for row in rows] == [1, 3, 5, 7, 9][start:]
    path.write_text("aa,b,y\n1,2,0\n3,4,1\naa,c,y\n1,8,7\n")
    with pytest.raises(ValueError, match=r"'t.csv' has no column 'b', which it had before. Give the same columns"):
        list(read_stream(path, on_error=on_error, chunk=chunk))


def test_objects_with_fields_of_the_same_name_and_with_null():
    record = '{"app": {"mean": %s, "more": %s}, "net": {"mean": %s}, "p__a": %s, "p__b": 1, "y": 0}'
    lines = [record % (i, "null" if i < 3 else i, 2 * i, "null" if i < 3 else i) for i in range(6)]
    pieces = [X for X, _ in read_lines(lines, "jsonl", 2)]
    assert {X.names for X in pieces} == {("app", "net", "p")}
    assert pieces[0].feature_names == {"app": ("mean", "more"), "net": ("mean",), "p": ("p__b", "p__a")}
    np.testing.assert_array_equal(np.vstack([X["app"] for X in pieces])[2:4], [[2, np.nan], [3, 3]])
    np.testing.assert_array_equal(np.vstack([X["p"] for X in pieces])[2:4], [[1, np.nan], [1, 3]])
    np.testing.assert_array_equal(np.vstack([X["net"] for X in pieces])[:, 0], np.arange(6) * 2)


def test_odd_lines():
    with pytest.raises(ValueError, match="The format of the stream must be 'jsonl', 'csv' or 'tsv'; got 'xml'"):
        read_lines([], "xml")
    with pytest.raises(ValueError, match="Column 'a' of the stream has the value 'x' in line 2, but numbers"):
        read_lines(['{"a": 1, "y": 0}', '{"a": "x", "y": 0}'], "jsonl")
    assert read_lines(["a,y", "1,--5"])[0][1] == ["--5"]


def test_a_column_of_csv_that_begins_empty_is_a_view_that_comes_late():
    lines = [
        "a__1,b__1,c__word,y",
        *(f"{i},,go,{i % 2}" for i in range(70)),
        *(f"{i},{i},go,{i % 2}" for i in range(30)),
    ]
    pieces = read_lines(lines)
    assert [len(labels) for _, labels in pieces] == [64, 36]
    assert pieces[0][0].names == ("a", "b", "c")
    assert not pieces[0][0].present("b").any()
    assert pieces[1][0].present("b").sum() == 30
    assert pieces[0][1][:2] == [0, 1]  # numbers stay numbers


def test_text_of_the_first_rows_stays_text():
    pieces = read_lines(["word,y", "x,a", "z,a", "1,1", "2,"], chunk=2)
    assert [X["word"].tolist() for X, _ in pieces] == [["x", "z"], ["1", "2"]]
    assert [labels for _, labels in pieces] == [["a", "a"], ["1", None]]


def test_lines_come_as_soon_as_a_chunk_is_there():
    given = []

    def slow():
        for k in range(9):
            given.append(k)
            yield "a,y\n" if not k else f"{k},0\n"

    next(read_stream(slow(), format="csv", chunk=2))
    assert len(given) == 3


def test_columns_of_json_lines_may_come_late():
    lines = ['{"a__1": 1, "y": 0}', '{"a__1": 2, "w": ["x"], "b__1": null, "y": 0}', '{"b__1": 3, "v": [1, 2], "y": 1}']
    pieces = read_lines([*lines, '{"w": ["z"], "y": 1}'], "jsonl", 1)
    assert [X.names for X, _ in pieces] == [("a",), ("a", "w"), ("v", "a", "b", "w"), ("v", "a", "b", "w")]
    assert pieces[3][0].mask.tolist() == [[False, False, False, True]]


def test_columns_of_a_stream_keep_the_order_of_the_first_rows(tmp_path):
    as_folder(tmp_path / "folder")  # whose second file has the columns in another order
    parts = [X for X, _ in read_stream(tmp_path / "folder")]
    assert [X.feature_names["a"] for X in parts] == [parts[0].feature_names["a"]] * 3
    np.testing.assert_array_equal(np.vstack([X["a"] for X in parts]), Z[:, :2])


def test_files_of_a_folder_have_the_same_columns(tmp_path):
    as_parquet(tmp_path / "1.parquet", a__1=[1.0], a__2=[2.0], y=[0])
    as_parquet(tmp_path / "2.parquet", a__1=[1.0], y=[0])
    with pytest.raises(ValueError, match=r"'2.parquet' has no column 'a__2', which it had before. Give the same"):
        list(read_stream(tmp_path))
    assert np.isnan(read_samples([tmp_path], target="y").X["a"][1, 1])


def test_a_libsvm_file_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("consilience.io._libsvm._PIECE", 200)
    wide = np.abs(np.random.default_rng(0).normal(size=(200, 30))) * (np.random.default_rng(1).random((200, 30)) < 0.2)
    path, labels = tmp_path / "data.libsvm", np.arange(200) % 3
    dump_svmlight_file(wide, labels, str(path), zero_based=False)
    read = list(read_stream(path, chunk=7))
    np.testing.assert_allclose(np.vstack([X["view0"].toarray() for X, _ in read]), wide, atol=1e-6)
    assert [label for _, part in read for label in part] == labels.tolist()


def test_streams_of_csv_are_fast(tmp_path):
    pd.DataFrame(np.random.default_rng(0).normal(size=(4000, 50))).assign(y=0).to_csv(tmp_path / "t.csv", index=False)
    start = time.process_time()
    assert sum(len(labels) for _, labels in read_stream(tmp_path / "t.csv", chunk=500)) == 4000
    assert time.process_time() - start < 3  # 200,000 cells; a tenth of a second is usual
