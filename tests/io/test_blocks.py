"""Files by blocks: the values, columns and targets of the whole file in every format, or a sentence."""

import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from consilience import Views, read_blocks
from consilience.io import read_samples

N = 240
rng = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "a": rng.normal(size=N), "b": rng.integers(0, 9, N), "sex": rng.choice(["F", "M"], N), "ok": rng.random(N) < 0.5,
    "note": [f"text {i}" for i in range(N)], "y": rng.choice(["p", "q"], N),
})  # fmt: skip
FRAME.loc[3, "sex"] = None
FRAME.loc[5, "a"] = np.nan
TYPED = FRAME.assign(
    stage=pd.Categorical(rng.choice(["I", "II"], N), categories=["II", "I", "V"]),  # V is in no row
    code=pd.Categorical(rng.integers(0, 3, N)),
)


def as_table(path, frame):
    suffix = "".join(path.suffixes)
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=50)
    elif suffix == ".feather":
        pa.feather.write_feather(frame, path, chunksize=50)
    elif suffix == ".arrow":
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in suffix else ",")
    return path


def joined(path, **options):
    blocks = read_blocks(path, **options)
    parts = list(blocks)
    assert blocks.n_samples == sum(len(part.X) for part in parts)
    y = None if parts[0].y is None else np.concatenate([part.y for part in parts])
    return Views.concat([part.X for part in parts]), y, parts


def check(path, **options):
    """Assert that blocks of any size have what the whole file has, and return it."""
    whole = read_samples([path], **options)
    names = {path.name.partition(".")[0]: "view0"}
    expected = whole.X.renamed({old: new for old, new in names.items() if old in whole.X.names})
    for size in (None, 7, 1):
        X, y, parts = joined(path, size=size, **options)
        assert max(len(part.X) for part in parts) <= (size or N)
        assert expected == X
        assert (X.names, X.feature_names, X.categories) == (expected.names, expected.feature_names, expected.categories)
        assert all(part.X.categories == X.categories for part in parts)
        if X.sample_names is not None or expected.sample_names is not None:
            assert X.sample_names.tolist() == expected.sample_names.tolist()
        if whole.y is not None:
            assert y.dtype == whole.y.dtype
            assert str(y.tolist()) == str(whole.y.tolist())  # NaN is not NaN
    return X, y, parts


def refused(message, path, error=ValueError, **options):
    with pytest.raises(error, match=re.escape(message)) as raised:
        list(read_blocks(path, **options))
    assert str(raised.value).isprintable()


# -- the same as the whole file
FORMATS = ["t.parquet", "t.feather", "t.arrow", "t.csv", "t.tsv", "t.csv.gz", "t.jsonl"]


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_are_the_file(tmp_path, name):
    frame = TYPED if name.endswith(("parquet", "feather", "arrow")) else FRAME
    X, _, _ = check(as_table(tmp_path / name, frame), target="y")
    assert X.names == ("view0", "note")
    if frame is TYPED:
        assert X.categories["view0"]["stage"] == ("II", "I", "V")
        assert X.categories["view0"]["code"] == ("0", "1", "2")


@pytest.mark.parametrize("name", FORMATS[:4])
def test_views_by_columns_patterns_and_prefix(tmp_path, name):
    path = as_table(tmp_path / name, FRAME)
    X, _, _ = check(path, target="y", views={"numbers": ["[ab]"], "who": ["sex", "ok"], "note": "note"})
    assert X.feature_names["who"] == ("sex=F", "sex=M", "ok")
    layout = tmp_path / "layout.toml"
    layout.write_text('target = "y"\n[views]\nnumbers = ["a", "b"]\n')
    assert check(path, views=layout)[0].names == ("numbers",)
    prefixed = FRAME.rename(
        columns={"a": "n__a", "b": "n__b", "sex": "who__sex", "ok": "who__ok", "note": "text__note"}
    )
    assert check(as_table(tmp_path / name, prefixed), target="y")[0].names == ("n", "who", "text")
    check(path, target="y", views="prefix")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "values", [[1, 2, 3] * 80, [1, 2, None] * 80, [0.5, None, 2] * 80, [True, False, True] * 80, ["a", None, "b"] * 80]
)
def test_targets_have_one_type_in_all_blocks(tmp_path, name, values):
    column = pd.Series(values, dtype="Int64") if values[0] is not True and isinstance(values[0], int) else values
    path = as_table(tmp_path / name, FRAME[["a", "b"]].assign(y=column))
    _, y, parts = check(path, target="y")
    assert len({part.y.dtype for part in parts}) == 1
    assert y.dtype.kind == {int: "O" if None in values else "i", float: "f", bool: "b", str: "O"}[type(values[0])]


@pytest.mark.parametrize("name", FORMATS)
def test_names_weights_and_several_targets(tmp_path, name):
    frame = FRAME[["a", "b"]].fillna(0.0).assign(id=[f"s{i:03}" for i in range(N)], w=np.arange(N), u=1.5)
    path = as_table(tmp_path / name, frame)
    X, y, parts = joined(path, ids="id", weight="w", target=["b", "u"], size=50)
    assert X.sample_names.tolist() == frame["id"].tolist()
    assert np.array_equal(np.concatenate([part.sample_weight for part in parts]), np.arange(N))
    assert np.array_equal(y, frame[["b", "u"]])
    assert X.feature_names == {"view0": ("a",)}


def test_names_from_an_index(tmp_path):
    frame = FRAME[["a", "b"]].set_index(pd.Index([f"s{i}" for i in range(N)]))
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv")
    for name in ("t.parquet", "t.csv"):
        X, _, _ = check(tmp_path / name)
        assert X.sample_names[-1] == f"s{N - 1}"
    frame.reset_index(drop=True).to_csv(tmp_path / "t.csv")  # row numbers are not names
    assert joined(tmp_path / "t.csv")[0].sample_names is None


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.jsonl"])
def test_lists_of_numbers_are_views(tmp_path, name):
    lists = [None if i % 7 == 3 else rng.normal(size=4).tolist() for i in range(N)]
    path = as_table(tmp_path / name, FRAME[["a"]].assign(emb=lists))
    X, _, _ = check(path)
    assert X["emb"].shape == (N, 4)
    assert not X.present("emb")[3]


def test_text_is_not_read_as_categories_and_categories_not_as_text(tmp_path):
    texts = FRAME[["note"]].assign(short=["x", "y"] * (N // 2))
    assert check(as_table(tmp_path / "t.parquet", texts))[0].names == ("note", "short")
    many = pd.DataFrame({"a": np.arange(30_000.0), "word": [f"w{i % 1200}" for i in range(30_000)]})
    X, _, _ = joined(as_table(tmp_path / "m.parquet", many))
    assert X.names == ("view0", "word")  # more than 1,000 different strings
    refused("'m.parquet': column 'word' has more than 1,000 different values", tmp_path / "m.parquet",
            views={"all": ["a", "word"]})  # fmt: skip


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_limit_of_categories_is_the_number_that_it_says(tmp_path, monkeypatch, name):
    monkeypatch.setattr("consilience.io._block_survey._MOST_VALUES", 3)
    frame = pd.DataFrame({"a": np.arange(8.0), "kind": list("xyzxyzxy"), "y": list("pq") * 4})
    options = {"target": "y", "views": {"v": ["a", "kind"]}}
    X, _, _ = joined(as_table(tmp_path / name, frame), **options)
    assert X.categories == {"v": {"kind": ("x", "y", "z")}}
    np.testing.assert_array_equal(X["v"][:, 1:].argmax(axis=1), np.arange(8) % 3)
    frame.loc[7, "kind"] = "w"
    refused("column 'kind' has more than 3 different values", as_table(tmp_path / name, frame), **options)


def test_a_column_without_values_in_a_block_stays(tmp_path):
    frame = FRAME[["a", "sex"]].copy()
    frame.loc[50:149, :] = None
    frame["empty"] = pd.Series([None] * N, dtype=object)
    frame["b"] = FRAME["b"]
    X, _, parts = check(as_table(tmp_path / "t.parquet", frame), views={"x": ["a", "sex"], "z": ["b", "empty"]})
    assert {part.X["x"].shape[1] for part in parts} == {3}
    assert not X.present("x")[50:150].any()
    assert X.present("x")[149 + 1 :].all()


def test_single_precision_stays(tmp_path):
    frame = pd.DataFrame(rng.normal(size=(N, 4)).astype(np.float32), columns=["a__1", "a__2", "b__1", "b__2"])
    frame["b__2"] = frame["b__2"].astype(float)
    X, _, _ = joined(as_table(tmp_path / "t.parquet", frame), size=50)
    assert (X["a"].dtype, X["b"].dtype) == (np.float32, np.float64)
    assert np.array_equal(X["a"], frame[["a__1", "a__2"]])
    assert all(X.block(name).flags.c_contiguous for name in X.names)


def test_na_values(tmp_path):
    frame = FRAME[["a", "b", "sex", "y"]].assign(b=FRAME["b"].where(FRAME.index % 5 != 0, -999))
    frame.loc[::11, "sex"] = "n.d."
    for name in FORMATS:
        path = as_table(tmp_path / name, frame)
        with pytest.warns(UserWarning, match=r"70 cells of 2 columns in '.*' \(b, sex\) are read as missing") as told:
            X, _, _ = check(path, target="y", na_values=["n.d.", "-999"])
        assert any(str(own.filename) == __file__ for own in told)
        assert X.categories == {"view0": {"sex": ("F", "M")}}
        assert np.isnan(X["view0"][::5, 1]).all()


def test_cells_that_are_read_as_missing_are_told_before_the_first_block(tmp_path):
    path = as_table(tmp_path / "t.csv", pd.DataFrame({"a": [1, -9, 3], "b": [-9, -9, 2]}))
    with pytest.warns(UserWarning, match=r"3 cells of 2 columns in 't.csv' \(a, b\) are read as missing"):
        read_blocks(path, na_values=["-9"])


# -- folders
def folder_of(path, *tables, names=None):
    path.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(pa.table(table), path / (names[number] if names else f"part{number}.parquet"))
    return path


def test_files_of_a_folder_in_sorted_order(tmp_path):
    tables = [{"a": [float(k)] * 3, "b": [k, k, k]} for k in (2, 0, 1)]
    path = folder_of(tmp_path / "d", *tables, names=["c.parquet", "a.parquet", "b.pq"])
    (path / "_metadata.parquet").write_bytes(b"no data")
    X, _, _ = joined(path)
    assert X["view0"][:, 0].tolist() == [0.0] * 3 + [1.0] * 3 + [2.0] * 3


def test_columns_by_name_types_and_dictionaries_of_files(tmp_path):
    path = folder_of(
        tmp_path / "d",
        {"a": [1, 2], "s": ["u", "v"], "f": pa.array([1.0, 2.0], pa.float32()), "y": [0, 1]},
        {"y": [0.5, None], "f": pa.array([1.0, 2.0]), "a": [1.5, None], "s": pa.array(["w", "u"]).dictionary_encode()},
        {"y": [1, 1], "a": pa.nulls(2), "s": pa.array(["u", None], pa.large_string()), "f": pa.array([True, False])},
    )
    X, y, _ = joined(path, target="y", views={"x": ["a", "s", "f"]})
    assert X.feature_names["x"] == ("a", "s=u", "s=v", "s=w", "f")
    nan = np.nan
    expected = [
        [1, 1, 0, 0, 1], [2, 0, 1, 0, 2], [1.5, 0, 0, 1, 1], [nan, 1, 0, 0, 2], [nan, 1, 0, 0, 1], [nan] * 4 + [0]
    ]  # fmt: skip
    assert np.array_equal(X["x"], expected, equal_nan=True)
    assert y.tolist()[:3] == [0, 1, 0.5]
    assert np.isnan(y[3])


def test_folder_names_are_columns(tmp_path):
    frame = FRAME[["a", "b", "y"]].assign(centre=np.arange(N) % 3, site=np.where(np.arange(N) % 2, "x y", None))
    pq.write_to_dataset(pa.Table.from_pandas(frame), tmp_path / "d", partition_cols=["centre", "site"])
    X, _, _ = joined(tmp_path / "d", views={"n": ["a", "b"], "place": ["centre", "site"]}, target="y")
    assert X.feature_names["place"] == ("centre", "site=x y")
    assert X["place"][:, 0].tolist() == sorted(frame["centre"])
    _, y, _ = joined(tmp_path / "d", views={"n": ["a", "b"]}, target="centre")
    assert y.dtype == np.int64
    assert np.array_equal(np.sort(X["n"][:, 0]), np.sort(frame["a"]), equal_nan=True)


def test_files_that_differ_are_refused_by_name(tmp_path):
    path = folder_of(tmp_path / "d", {"a": [1.0], "b": [2.0]}, {"a": [1.0]})
    refused("'part1.parquet' lacks 1 column that 'part0.parquet' has: b.", path)
    assert joined(path, views={"x": "a"})[0].shape == (2, 1)
    path = folder_of(tmp_path / "e", {"a": [1.0]}, {"a": ["text"]})
    refused("Column 'a' has strings in 'part1.parquet', but numbers in 'part0.parquet'.", path)
    nothing, numbers, text = {"a": pa.nulls(1)}, {"a": [1.0]}, {"a": ["text"]}
    path = folder_of(tmp_path / "g", nothing, numbers, text)
    refused("Column 'a' has strings in 'part2.parquet', but numbers in 'part1.parquet'.", path)
    path = folder_of(tmp_path / "h", numbers, nothing, text)
    refused("Column 'a' has strings in 'part2.parquet', but numbers in 'part0.parquet'.", path)
    (tmp_path / "f").mkdir()
    refused("has no .parquet file", tmp_path / "f", FileNotFoundError)


# -- files that are damaged or change
def test_damaged_files(tmp_path):
    path = tmp_path / "t.parquet"
    as_table(path, FRAME)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("'t.parquet' cannot be read as Parquet", path)
    path.write_bytes(b"")
    refused("'t.parquet' cannot be read as Parquet", path)
    table = pa.table({"a": rng.normal(size=4000)})
    pq.write_table(table, path, row_group_size=1000, compression="snappy", use_dictionary=False)
    about = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content = bytearray(path.read_bytes())
    content[about.data_page_offset : about.data_page_offset + 400] = b"\xff" * 400
    path.write_bytes(content)
    refused("'t.parquet', from row 2000 on, cannot be read", path, size=1000)
    feather = as_table(tmp_path / "t.feather", FRAME)
    feather.write_bytes(feather.read_bytes()[:500])
    refused("'t.feather' cannot be read as Arrow", feather)
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 10_000)
    packed = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) // 2])
    refused("'t.csv.gz' cannot be read", tmp_path / "t.csv.gz")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.feather"])
def test_a_file_that_changes_between_passes(tmp_path, name):
    path = as_table(tmp_path / name, FRAME[["a", "b"]])
    blocks = read_blocks(path, size=50)
    list(blocks)
    as_table(path, FRAME[["a", "b"]].iloc[:-1])
    with pytest.raises(ValueError, match=f"'{name}' has changed since read_blocks looked at it first: .* bytes then"):
        list(blocks)
    blocks = read_blocks(path, size=50)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match="it was written again"):
        list(blocks)
    blocks = read_blocks(path, size=50)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"'{name}' cannot be read: No such file"):
        list(blocks)


def test_no_row_of_a_file_that_has_changed_is_given(tmp_path):
    path = folder_of(tmp_path / "d", {"a": np.zeros(100)}, {"a": np.ones(100)})
    blocks, given = iter(read_blocks(path, size=25)), []
    given += next(blocks).X["view0"].ravel().tolist()
    pq.write_table(pa.table({"a": np.full(90, 2.0)}), path / "part1.parquet")
    with pytest.raises(ValueError, match=r"'part1.parquet' has changed since read_blocks looked at it first"):
        given.extend(value for block in blocks for value in block.X["view0"].ravel())
    assert set(given) == {0.0}


# -- refusals
def test_refusals(tmp_path):
    path = as_table(tmp_path / "t.parquet", FRAME.assign(day=pd.Timestamp("2020-01-01"), w=[np.nan] + [1.0] * (N - 1)))
    refused("There is no file or folder", tmp_path / "no.csv", FileNotFoundError)
    refused("'t.npz' is not read by blocks", as_npz(tmp_path / "t.npz"))
    refused("column 'day' has dates or times", path)
    views = {"x": ["a", "b"]}
    refused("No column 'z' is in 't.parquet', only 'a', 'b', 'sex", path, views=views, target="z")
    refused("View 'x' has no column 'q' in 't.parquet', only 'a'", path, views={"x": ["a", "q"]})
    refused("Row 0 of 't.parquet' does not have a weight in column 'w'", path, views=views, weight="w")
    refused("Row 3 of 't.parquet' does not have a sample name in column 'sex'", path, views=views, ids="sex", size=2)
    refused("Column 'sex' of 't.parquet' has strings; weights must be numbers", path, views=views, weight="sex")
    refused("a target of several outputs must be numbers", path, views={"x": "b"}, target=["a", "sex"])
    refused("Row 5 of 't.parquet' has no view at all", path, views={"x": "a"}, size=2)
    refused("`size` is the largest number of samples in a block, an integer of at least 1; got 0", path, size=0)
    refused("`views` is empty", path, views={})
    refused("is named twice", path, views=views, target="y", ids="y")
    refused("No view is left", as_table(tmp_path / "y.parquet", FRAME[["y"]]), target="y")
    refused("'e.csv' has no samples", as_table(tmp_path / "e.csv", FRAME[["a", "b"]].iloc[:0]))
    refused("'e.parquet' has no samples", as_table(tmp_path / "e.parquet", FRAME[["a", "b"]].iloc[:0]))


def as_npz(path):
    np.savez(path, a=np.ones((3, 2)))
    return path


def test_numbers_with_cells_that_are_not_are_refused(tmp_path):
    values = [f"{value:.6f}" for value in rng.normal(size=3000)]
    values[2500] = "n.d."
    path = as_table(tmp_path / "t.parquet", pd.DataFrame({"a": values, "b": 1.0}))
    refused("'t.parquet': column 'a' has numbers, and 1 cell that cannot be read as numbers: 'n.d.'", path)
    refused("column 'a' has numbers, and 1 cell", path, views={"x": ["a", "b"]})
    late = tmp_path / "late.csv"
    late.write_text("a,b\n" + "1,2\n" * 3_000_000 + "n.d.,2\n")
    refused("Column 'a' of 'late.csv' has the value 'n.d.' in line 3000002", late)


def test_lists_of_other_lengths_name_the_row(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.ones(5), "e": [[1.0, 2.0]] * 4 + [[1.0]]}), path)
    refused("Column 'e' of 't.parquet' has a list of 1 numbers in row 4, but of 2 in rows before", path, size=2)


def test_mixed_labels_of_json_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({"a": [1.0, 2.0], "y": label}) for label in (1, "1", 2)))
    refused("Column 'y' of 't.jsonl' has values of several kinds", path, target="y")


# -- cost
@pytest.mark.parametrize("cells", [["low"] * 8 + ["high"], list("abcde"), list("abcdef"), list("abcdefg")], ids=len)
def test_cells_that_are_not_numbers_are_named_as_in_memory(cells, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{cell},0\n" for cell in [*cells, *range(30)]))
    said = []
    for read in (read_samples, read_blocks):
        with pytest.raises(ValueError, match="column 'a' has numbers") as error:
            read(path, target="y")
        said.append(str(error.value).partition("cannot be read as numbers: ")[2])
    assert said[0] == said[1]
    assert all(cell in said[0].partition(" Correct")[0] for cell in cells[:5])


def test_only_columns_that_are_used_are_read(tmp_path, monkeypatch):
    path = as_table(tmp_path / "t.parquet", TYPED)
    asked = []
    plain = pq.ParquetFile.iter_batches

    def noted(own, **how):
        if "columns" in how:  # not where a file without bytes is tried
            asked.append(sorted(how["columns"]))
        return plain(own, **how)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    blocks = read_blocks(path, views={"x": ["a", "b"]}, target="y")
    assert not asked  # the file says all that is needed
    assert blocks.n_samples == N
    list(blocks)
    assert asked == [["a", "b", "y"]]
    asked.clear()
    read_blocks(path, views={"x": ["a", "sex"]})
    assert asked == [["sex"]]


def test_memory_does_not_grow_with_the_rows(tmp_path):
    table = pa.table({f"x{j}": rng.normal(size=400_000) for j in range(20)})
    script = """
import sys
from consilience import read_blocks
from pathlib import Path
for X, y, w in read_blocks(sys.argv[1], size=20_000):
    pass
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10)
"""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("the peak of memory is read from /proc")
    peaks = []
    for n in (40_000, 400_000):
        path = tmp_path / f"{n}.parquet"
        pq.write_table(table.slice(0, n), path, use_dictionary=False)  # dictionaries grow up to 1 MB per column
        done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
    assert peaks[1] - peaks[0] < 20  # 400,000 rows are 61 MB


def test_a_pass_that_stops_leaves_no_thread(tmp_path):
    import threading

    path = as_table(tmp_path / "t.parquet", FRAME[["a", "b"]])
    before = threading.active_count()
    for _ in read_blocks(path, size=10):
        break
    assert threading.active_count() == before


def test_no_warning_without_a_reason(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in FORMATS:
            list(read_blocks(as_table(tmp_path / name, FRAME), target="y"))


def test_no_view_is_lost_behind_a_column_of_its_name(tmp_path):
    path = as_table(tmp_path / "note.parquet", FRAME[["a", "b", "note"]])
    with pytest.raises(ValueError, match="Two views would be named 'note'"):
        read_samples([path])
    assert joined(path)[0].names == ("view0", "note")


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_blocks_are_read_in_another_process(ending, tmp_path):
    as_table(tmp_path / f"t.{ending}", FRAME[["a", "b", "y"]])
    (tmp_path / "blocks").write_bytes(pickle.dumps(read_blocks(tmp_path / f"t.{ending}", target="y", size=50)))
    script = "import pickle, sys; print(sum(len(X) for X, *_ in pickle.load(open(sys.argv[1], 'rb'))))"
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "blocks"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == N


def test_classes_that_look_like_numbers_stay_text_if_they_are_classes(tmp_path):
    path = tmp_path / "grades.csv"
    path.write_text("x,grade\n" + "1,1.1\n2,1.10\n3,2.5\n" * 10)
    assert {own for _, y, _ in read_blocks(path, target="grade", task="classification", size=7) for own in y} == {
        "1.1", "1.10", "2.5"
    }  # fmt: skip
    assert next(iter(read_blocks(path, target="grade"))).y.dtype == float
