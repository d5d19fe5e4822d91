"""Rows of streams: numbered, started from anywhere, left out where they cannot be read; lists, maps and columns."""

import json
import os
import re
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from consilience import RowBlocks, Views, read_samples, read_stream
from consilience.io import Quarantine, StreamReader

N = 23
rng = np.random.default_rng(0)
A, B = rng.normal(size=(N, 3)).round(3), rng.normal(size=(N, 2)).round(3)
B[4] = B[11] = np.nan  # a missing view
Y = np.arange(N) % 3


def as_jsonl(path, rows=range(N)):
    records = [{"a": A[i].tolist(), "b": None if np.isnan(B[i, 0]) else B[i].tolist(), "y": int(Y[i])} for i in rows]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def as_csv(path):
    names = [*(f"a__{j}" for j in range(3)), *(f"b__{j}" for j in range(2)), "y"]
    cells = [["" if np.isnan(v) else str(v) for v in (*A[i], *B[i])] + [str(Y[i])] for i in range(N)]
    path.write_text("\n".join(",".join(row) for row in [names, *cells]))


def arrow_table():
    lists = [None if np.isnan(row[0]) else row.tolist() for row in B]
    return pa.table({"a": pa.array(A.tolist()), "b": lists, "y": Y})


def as_folder(path):
    path.mkdir()
    for k, first in enumerate((0, 9, 16)):
        own = arrow_table().slice(first, (9, 7, 7)[k])
        pq.write_table(own, path / f"part-{k}.parquet", row_group_size=3)


SEEKABLE = {
    "t.jsonl": as_jsonl,
    "t.csv": as_csv,
    "t.parquet": lambda path: pq.write_table(arrow_table(), path, row_group_size=5),
    "t.feather": lambda path: pyarrow.feather.write_feather(arrow_table(), path, chunksize=4),
    "folder": as_folder,
    "t.npz": lambda path: np.savez(path, a=A, b=B, y=Y),
    "t.libsvm": lambda path: dump_svmlight_file(A, Y, str(path), zero_based=False),
}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    """Read as few rows at a time as a chunk has, so that small files have several tables."""
    monkeypatch.setattr("consilience.io._arrow._ROWS", 1)
    monkeypatch.setattr("consilience.io._libsvm._PIECE", 100)


def drained(reader):
    """Return all samples, labels and row numbers of a stream."""
    parts = [(X, list(labels), reader.rows) for X, labels in reader]
    rows = np.concatenate([rows for _, _, rows in parts]) if parts else np.zeros(0, int)
    return (Views.concat([X for X, _, _ in parts]) if parts else None), [y for _, own, _ in parts for y in own], rows


# -- row numbers
@pytest.mark.parametrize("chunk", [2, 5, 100])
@pytest.mark.parametrize("name", SEEKABLE)
def test_start_is_the_same_as_leaving_rows_out(name, chunk, tmp_path):
    SEEKABLE[name](tmp_path / name)
    X, y, rows = drained(read_stream(tmp_path / name, chunk=chunk))
    assert rows.tolist() == list(range(N))
    for start in (0, 1, 4, 5, 16, N - 1, N, N + 5):
        reader = read_stream(tmp_path / name, chunk=chunk, start=start)
        later, labels, own = drained(reader)
        assert own.tolist() == list(range(start, N))
        assert labels == y[start:]
        assert reader.n_rows == max(start, N)
        assert later is None if start >= N else later == X[start:]


@pytest.mark.parametrize("kind", ["arrays", "blocks", "items", "chunks", "lines"])
def test_other_streams_start_anywhere(kind, tmp_path):
    views = Views(a=A, b=B)
    as_csv(tmp_path / "t.csv")
    sources = {
        "arrays": lambda: read_stream(views, Y, chunk=4, start=6),
        "blocks": lambda: read_stream(RowBlocks.of(views, Y, size=5), chunk=4, start=6),
        "items": lambda: read_stream(zip(views, Y, strict=True), start=6),
        "chunks": lambda: read_stream([(views[:9], Y[:9]), (views[9:], Y[9:])], start=6),
        "lines": lambda: read_stream((tmp_path / "t.csv").read_text().splitlines(), format="csv", chunk=4, start=6),
    }
    X, y, rows = drained(sources[kind]())
    assert rows.tolist() == list(range(6, N))
    assert [int(label) for label in y] == Y[6:].tolist()
    np.testing.assert_array_equal(X["a"], A[6:])


def test_single_samples_have_row_numbers():
    reader = read_stream(iter([({"a": [1.0]}, 0), ({"a": [2.0]}, 1)]), start=1)
    assert isinstance(reader, StreamReader)
    assert [(sample["a"], reader.rows.tolist(), reader.n_rows) for sample, _ in reader] == [([2.0], [1], 2)]


def test_rows_without_a_view_are_counted(tmp_path):
    records = [{"a": [1.0], "y": 0}, {"y": 1}, {"a": None, "y": 1}, {"y": 0}, {"a": [2.0], "y": 1}, {"y": 1}]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for chunk in (1, 2, 9):
        reader = read_stream(path, chunk=chunk)
        with pytest.warns(UserWarning, match="4 rows have no view at all and are left out of 't.jsonl': 1, 2, 3, 5. R"):
            X, y, rows = drained(reader)
        assert (X["a"].ravel().tolist(), y, rows.tolist(), reader.n_rows) == ([1, 2], [0, 1], [0, 4], 6)


def test_rows_without_a_view_are_counted_from_the_start_on(tmp_path):
    records = [{"a": [1.0], "y": 0}, {"y": 1}, {"y": 0}, {"a": [2.0], "y": 1}, {"y": 1}]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for start, expected in ((1, "3 rows have .*: 1, 2, 4"), (2, "2 rows have .*: 2, 4"), (4, "1 row has .*: 4")):
        with pytest.warns(UserWarning, match=rf"^{expected}\. "):
            drained(read_stream(path, chunk=9, start=start))


def test_row_groups_before_the_start_are_not_read(tmp_path, monkeypatch):
    pq.write_table(arrow_table(), tmp_path / "t.parquet", row_group_size=5)
    read = []
    whole = pq.ParquetFile.iter_batches

    def counted(self, *args, **options):
        if "row_groups" in options:  # not where a file without bytes is tried
            read.append(list(options["row_groups"]))
        return whole(self, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    assert drained(read_stream(tmp_path / "t.parquet", chunk=5, start=17))[2].tolist() == list(range(17, N))
    assert read == [[0, 1, 2, 3, 4], [3, 4]]  # the first batch tells what the columns are, and no more is taken


def test_odd_options_get_a_sentence(tmp_path):
    as_csv(tmp_path / "t.csv")
    for options, message in (
        ({"start": -1}, "`start` is a number of rows, an integer of at least 0; got -1"),
        ({"on_error": "drop"}, "`on_error` must be 'stop' or 'skip'; got 'drop'"),
        ({"quarantine": "q.jsonl"}, "`quarantine` has the rows that are left out. Give on_error='skip'"),
        ({"libsvm_base": 2}, "`libsvm_base` is the number of the first column: 0, 1 or None; got 2"),
    ):
        (tmp_path / "t.libsvm").write_text("1 1:2\n")
        with pytest.raises(ValueError, match=message):
            next(read_stream(tmp_path / "t.libsvm", **options))
    reader = read_stream(tmp_path / "t.csv")
    assert read_stream(reader) is reader
    with pytest.raises(ValueError, match="The stream is open already"):
        read_stream(reader, start=3)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_file_that_is_cut_off_gets_a_sentence(name, tmp_path):
    SEEKABLE[name](tmp_path / name)
    content = (tmp_path / name).read_bytes()
    for cut in (len(content) - 4, len(content) // 2, 20):
        (tmp_path / name).write_bytes(content[:cut])
        with pytest.raises(ValueError, match=f"'{name}'.* cannot be read as .* damaged"):
            drained(read_stream(tmp_path / name, on_error="skip"))


# -- rows that cannot be read
GOOD = [f'{{"v": [{i}, 0.5], "n": {i}, "m": {{"k": {i}}}, "y": 0}}' for i in range(9)]
BAD_ROWS = {  # format -> lines, of which those with a sentence are bad
    "jsonl": [
        (GOOD[0], None), (GOOD[1], None), ('{"v": [1', "Line 3 of .* is not JSON"), (GOOD[2], None),
        ("[1, 2]", "Line 5 of .* is not a JSON object"), ('{"v": [1, 2.5], "n": 1}', "Line 6 of .* has no key 'y'"),
        (GOOD[3], None), ('{"v": [1, 2, 3.5], "y": 0}', "'v' of .* has lists of 2 and of 3 numbers"),
        ('{"v": "x", "y": 0}', "'v' of .* has the value 'x' in line 9, but lists of numbers in other rows"), ("", None),
        ('{"n": "x", "y": 0}', "'n' of .* has the value 'x' in line 11, but numbers"), (GOOD[4], None),
        ('{"v": [1, "2"], "y": 0}', "'v' of .* has a list in line 13, but lists of numbers"), (GOOD[5], None),
        ('{"n": 1' + "0" * 400 + ', "y": 1}', "'n' of .* has an integer that is too large for float64, in line 15"),
    ],
    "csv": [
        ("1,2,0", None), ("2,3,1", None), ("3,4", "in line 4: Expected 3 columns, got 2: '3,4'"), ("5,6,0", None),
        ("5,6,7,0", "in line 6: Expected 3 columns, got 4"), ("6,oops,1", "'b' of .* has the value 'oops' in line 7"),
        ("", None), ("7,8,1", None), ('"7,8,1', "in line 10: Expected 3 columns"), ("8,9,1", None), ("9,,0", None),
        ("x,9,1", "'a' of .* has the value 'x' in line 13"),
    ],
    "libsvm": [
        ("1 1:0.5 3:1", None), ("0 1:x", "Line 2 of .* cannot be read as libsvm"), ("1 2:1", None), ("# note", None),
        ("1 3:1 2:1", "Line 5 of .* cannot be read as libsvm: Feature indices"), ("0 1:1 2:1", None),
        ("what 1:1", "Line 7 of .* cannot be read as libsvm"), ("1 1:1 99999999:x", "Line 8 of .* cannot be read"),
        ("1 1:1 99999999:1", "Line 9 of .* has a column with the number 99999999; numbers up to 67108864 are read"),
    ],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*no view at all")
@pytest.mark.parametrize("chunk", [2, 4, 100])
@pytest.mark.parametrize("format", BAD_ROWS)
def test_bad_rows_stop_the_stream_or_are_left_out(format, chunk, tmp_path):
    header = ["a,b,y"] if format == "csv" else []
    path, lines = tmp_path / f"t.{format}", BAD_ROWS[format]
    rows = [(line, said) for line, said in lines if line and not line.startswith("#")]
    path.write_text("\n".join([*header, *(line for line, _ in lines)]) + "\n")
    with pytest.raises(ValueError, match="|".join(said for _, said in rows if said)):
        drained(read_stream(path, chunk=chunk))
    reader = read_stream(path, chunk=chunk, on_error="skip", quarantine=tmp_path / "q.jsonl")
    n_bad = sum(said is not None for _, said in rows)
    with pytest.warns(UserWarning, match=f"{n_bad} rows cannot be read and are left out of 't.{format}'. See '.*q.jso"):
        X, y, own = drained(reader)
    assert own.tolist() == [k for k, (_, said) in enumerate(rows) if said is None]
    assert reader.n_rows == len(rows)
    good = tmp_path / f"good.{format}"
    good.write_text("\n".join([*header, *(line for line, said in rows if said is None)]) + "\n")
    whole = read_samples([good], target="y")
    assert X.renamed({"view0": "good"} if "view0" in X.names else {}) == whole.X
    assert [float(label) for label in y] == whole.y.tolist()
    told = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert sorted(record["row"] for record in told) == [k for k, (_, said) in enumerate(rows) if said is not None]
    for record in told:
        line, said = rows[record["row"]]
        assert record["content"] == line
        assert re.search(said, record["error"])


LATE = {  # which the first rows must have decided
    "t.csv": ("a,y\n1,0\n2,1\n1,zz\n3,1\n", "'y' of 't.csv' has text in line 4, but numbers in all rows before"),
    "u.jsonl": (
        "".join(f'{{"m": {m}, "y": 0}}\n' for m in ('{"k": 1}', '{"k": 2}', '{"k": "x"}', '{"k": 4}')),
        "'m' of 'u.jsonl' has an object with other values than numbers, in line 3",
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_rows_that_differ_from_the_first_ones_are_left_out(name, tmp_path):
    content, message = LATE[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        drained(read_stream(tmp_path / name, chunk=2))
    with pytest.warns(UserWarning, match="1 row cannot be read"):
        assert drained(read_stream(tmp_path / name, chunk=2, on_error="skip"))[2].tolist() == [0, 1, 3]


def test_lists_of_other_lengths_in_arrow_are_left_out(tmp_path):
    lists = [[1.0, 2.0], [3.0, 4.0], [5.0], None, [6.0, 7.0]]
    pq.write_table(pa.table({"v": lists, "n": [1.0] * 5, "y": range(5)}), tmp_path / "t.parquet")
    message = r"'v' of 't.parquet' has lists of 2 and of 1 numbers, the latter in row 2 \(counted from 0\)"
    for chunk in (1, 2, 9):
        with pytest.raises(ValueError, match=message):
            drained(read_stream(tmp_path / "t.parquet", chunk=chunk))
        with Quarantine() as quarantine, pytest.warns(UserWarning, match=r"1 row cannot be read and is left out"):
            X, y, rows = drained(
                read_stream(tmp_path / "t.parquet", chunk=chunk, on_error="skip", quarantine=quarantine)
            )
        assert (y, rows.tolist(), quarantine.count) == ([0, 1, 3, 4], [0, 1, 3, 4], 1)
        assert X.present("v").tolist() == [True, True, False, True]


def test_other_bytes_cost_one_row(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"w,y\nx,1\n\xe9,1\nz,0\n")
    (tmp_path / "t.jsonl").write_bytes(b'{"w": "x", "y": 1}\n{"w": "\xe9", "y": 1}\n{"w": "z", "y": 0}\n')
    for name in ("t.csv", "t.jsonl"):
        with pytest.warns(UserWarning, match="1 row cannot be read"):
            X, _, rows = drained(read_stream(tmp_path / name, on_error="skip", quarantine=tmp_path / "q.jsonl"))
        assert (X["w"].tolist(), rows.tolist()) == (["x", "z"], [0, 2])
    assert "not encoded in UTF-8" in (tmp_path / "q.jsonl").read_text()


def test_items_that_are_not_pairs_are_left_out():
    items = [({"a": [1.0]}, 0), 5, ({"a": [2.0]}, 1)]
    reader = read_stream(items, on_error="skip")
    with pytest.warns(UserWarning, match="1 row cannot be read and is left out of the stream"):
        assert [(reader.rows.tolist(), label) for _, label in reader] == [([0], 0), ([2], 1)]


def test_rows_before_the_start_are_not_left_out_twice(tmp_path):
    lines = ["a,y", "1,0", "2", "3,1", "4", "5,0"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="1 row cannot be read"):
        rows = drained(read_stream(tmp_path / "t.csv", chunk=1, start=3, on_error="skip"))[2]
    assert rows.tolist() == [4]


def test_a_quarantine_appends(tmp_path):
    for row in range(2):
        with Quarantine(tmp_path / "q.jsonl") as quarantine:
            quarantine.add(row, "No.", {"a": np.float64(1), "b": object})
        assert quarantine.count == 1
    records = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert [record["row"] for record in records] == [0, 1]
    with pytest.raises(FileNotFoundError, match=r"The folder '.*none' does not exist"):
        Quarantine(tmp_path / "none" / "q.jsonl")


# -- lists, maps and fields
OBJECTS = {
    "tokens": [["a", "b"], [], None, ["c"]],
    "ids": [[1, 2], [3], None, [4, 5, 6]],
    "maps": [{"a": 1}, {"b": 2.5, "a": 1}, None, {}],
    "texts in objects": [{"a": "x"}, {"a": "y"}, None, {"a": "x"}],
}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", OBJECTS)
def test_lists_and_maps_are_views_of_objects(name, suffix, tmp_path):
    values, path = OBJECTS[name], tmp_path / f"t.{suffix}"
    if suffix == "jsonl":
        records = [{"v": own, "n": float(i), "y": i} for i, own in enumerate(values)]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        given = [None if own is None else list(own.items()) for own in values] if name == "maps" else values
        kind = pa.map_(pa.string(), pa.float64()) if name == "maps" else None
        pq.write_table(pa.table({"v": pa.array(given, kind), "n": [0.0, 1, 2, 3], "y": range(4)}), path)
    whole = read_samples([path], target="y").X
    assert whole["v"].tolist() == values
    X, _, _ = drained(read_stream(path, chunk=2))
    assert X["v"].tolist() == values
    assert X["view0"].ravel().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_objects_with_the_same_fields_are_numbers(suffix, tmp_path):
    rows = [
        {"mfcc": [1, 2], "more": {"rms": 3.5, "loud": True}},
        None,
        {"mfcc": None, "more": {"rms": 4, "loud": None}},
    ]
    path = tmp_path / f"t.{suffix}"
    if suffix == "jsonl":
        turned = {"more": {"loud": False, "rms": 5}, "mfcc": [3, 4]}  # the order of keys has no meaning
        path.write_text("".join(json.dumps({"audio": own, "y": 0}) + "\n" for own in [*rows, turned]))
    else:
        pq.write_table(
            pa.table({"audio": [*rows, {"mfcc": [3, 4], "more": {"rms": 5, "loud": False}}], "y": [0] * 4}), path
        )
    expected = [[1, 2, 3.5, 1], [np.nan, np.nan, 4, np.nan], [3, 4, 5, 0]]
    with pytest.warns(UserWarning, match="no view at all"):
        whole = read_samples([path], target="y").X
    with pytest.warns(UserWarning, match="no view at all"):
        X, _, _ = drained(read_stream(path, chunk=1))
    for read in (whole, X):
        assert read.feature_names == {"audio": ("mfcc.0", "mfcc.1", "more.rms", "more.loud")}
        np.testing.assert_array_equal(read["audio"], expected)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_first_rows_decide_what_lists_are(suffix, tmp_path):
    path, values = tmp_path / f"t.{suffix}", [[1, 2], [3, 4], [5]]
    if suffix == "jsonl":
        path.write_text("".join(json.dumps({"v": own, "y": 0}) + "\n" for own in values))
    else:
        pq.write_table(pa.table({"v": values, "y": [0] * 3}), path)
    assert read_samples([path], target="y").X["v"].tolist() == values
    with pytest.raises(ValueError, match=r"lists of 2 and of 1 numbers.* name a column of ids or maps by `objects`"):
        drained(read_stream(path, chunk=2))
    for start in (0, 2):
        X, _, _ = drained(read_stream(path, chunk=2, objects="v", start=start))
        assert X["v"].tolist() == values[start:]
        assert drained(read_stream(path, chunk=3, start=start))[0]["v"].tolist() == values[start:]


def test_dictionary_strings_of_a_stream_are_a_view(tmp_path):
    words = pa.array(["x", None, "z", "x"]).dictionary_encode()
    pq.write_table(pa.table({"n": [1.0, 2, 3, 4], "word": words, "y": range(4)}), tmp_path / "t.parquet")
    X, _, _ = drained(read_stream(tmp_path / "t.parquet", chunk=3))
    assert X.names == ("view0", "word")
    assert X["word"].tolist() == ["x", None, "z", "x"]
    named = drained(read_stream(tmp_path / "t.parquet", views={"w": "word", "v": "n"}, chunk=3))[0]
    assert named["w"].tolist() == X["word"].tolist()


# -- libsvm
@pytest.mark.parametrize("base", [0, 1])
def test_columns_of_libsvm_are_counted_from_0_or_1(base, tmp_path):
    values = sp.csr_array(sp.random(40, 6, density=0.4, random_state=rng))
    values[3, 0] = values[0, 5] = 1.0
    path = tmp_path / "t.libsvm"
    dump_svmlight_file(values, np.arange(40), str(path), zero_based=base == 0)
    for given in (None, base):
        for X in (
            read_samples([path], libsvm_base=given).X["t"],
            drained(read_stream(path, libsvm_base=given))[0]["view0"],
        ):
            np.testing.assert_allclose(X.toarray(), values.toarray(), atol=1e-6)
    if base == 0:
        for read in (lambda: read_samples([path], libsvm_base=1), lambda: drained(read_stream(path, libsvm_base=1))):
            with pytest.raises(
                ValueError, match=r"Line .* has a column with the number 0, but columns are numbered from 1"
            ):
                read()
    else:
        assert read_samples([path], libsvm_base=0).X["t"].shape == (40, 7)


@pytest.mark.parametrize("views", [
    {"a": slice(0, 2), "b": slice(2, 8)}, {"a": [0, 1], "b": range(2, 8)}, {"a": "0:2", "b": ["2:5", "5", "6:8"]},
])  # fmt: skip
def test_views_of_libsvm_columns(views, tmp_path):
    values = sp.csr_array(sp.random(30, 7, density=0.5, random_state=rng))
    values[0, 6] = 1.0
    path = tmp_path / "t.svm"
    dump_svmlight_file(values, np.arange(30), str(path), zero_based=False)
    expected = np.hstack([values.toarray(), np.zeros((30, 1))])  # the last column is in no row
    for X in (read_samples([path], views=views).X, drained(read_stream(path, views=views, chunk=7))[0]):
        assert X.kind("a") == X.kind("b") == "sparse"
        np.testing.assert_allclose(X["a"].toarray(), expected[:, :2], atol=1e-6)
        np.testing.assert_allclose(X["b"].toarray(), expected[:, 2:], atol=1e-6)
    for odd, message in (("word", "have no names. Give their numbers"), (slice(3, 3), "are not columns of")):
        with pytest.raises(ValueError, match=message):
            read_samples([path], views={"a": odd})


@pytest.mark.parametrize("chosen", [[0, 1, 3, 2, 4], [0, 1, 1, 3], [2, 1, 0], [1, 2, 3], [4]])
def test_columns_of_libsvm_keep_the_order_in_which_they_are_chosen(chosen, tmp_path):
    values, path = np.arange(1.0, 11.0).reshape(2, 5), tmp_path / "t.svm"
    dump_svmlight_file(values, [0, 1], str(path), zero_based=False)
    X = read_samples([path], views={"v": chosen, "w": [0]}).X
    np.testing.assert_array_equal(X["v"].toarray(), values[:, chosen])


@pytest.mark.parametrize("content", ["a,y\n", "a,y\nword\n1,0\n"])
def test_a_stream_counts_its_rows_and_those_that_are_left_out(content, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    reader = read_stream(tmp_path / "t.csv", on_error="skip")
    with nullcontext() if content == "a,y\n" else pytest.warns(UserWarning, match="1 row cannot be read"):
        drained(reader)
    assert reader.n_rows == content.count("\n") - 1


def test_rows_in_quarantine_are_written_as_they_are(tmp_path):
    with Quarantine(tmp_path / "q.jsonl") as quarantine:
        quarantine.add(0, "Größe", "é" * 20_000)
        quarantine.add(1, "No.", {(1, 2): 3, "b": 4})
        handle = quarantine._handle
    with pytest.raises(OSError):  # closed
        os.fstat(handle)
    first, second = (tmp_path / "q.jsonl").read_text(encoding="utf-8").splitlines()
    assert first.startswith('{"row": 0, "error": "Größe", "content": "éé')
    assert len(first) < 20_000
    assert second == '{"row": 1, "error": "No.", "content": {"b": 4}}'
