"""Files as people have them: packed, with other separators, decimal signs and encodings, transposed, of Excel."""

import bz2
import gzip
import json
import lzma
import re
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from consilience import Views, read_blocks
from consilience.io import read_samples, read_stream

VALUES = [[1.5, -2.0], [0.25, 1000.0], [3.0, np.nan]]
LABELS = ["p", "q", "p"]
PLAIN = "a,b,y\n1.5,-2,p\n0.25,1000,q\n3,,p\n"
COMMAS = "a;b;y\n1,5;-2;p\n0,25;1000;q\n3;;p\n"  # decimal ones
BLANKS = "a b y\n1.5 -2 p\n0.25  1000 q\n3 NA p\n"
OF_R = '"a"\t"b"\t"y"\n"s1"\t1.5\t-2\t"p"\n"s2"\t0.25\t1e3\t"q"\n"s3"\t3\tNA\t"p"\n'
SPARSE = "1 1:0.5 3:1\n0 2:4\n"


def both(path, **options):
    """Return the only view of a file and its labels, which a stream has too."""
    whole = read_samples([path], target="y", **options)
    for chunk in (1, 4096):
        parts = list(read_stream(path, chunk=chunk, **options))
        assert Views.concat([X.renamed({"view0": whole.X.names[0]}) for X, _ in parts]) == whole.X
        assert [label for _, labels in parts for label in labels] == whole.y.tolist()
    return whole.X[whole.X.names[0]], whole.y.tolist()


def both_refuse(path, message, **options):
    for read in (lambda: read_samples([path], target="y", **options), lambda: list(read_stream(path, **options))):
        with pytest.raises(ValueError, match=re.escape(message)) as raised:
            read()
        assert str(raised.value).isprintable()


# -- separators, packing, encodings
SAME = {
    "t.csv": PLAIN.encode(),
    "semicolons.csv": PLAIN.replace(",", ";").encode(),
    "decimal commas.csv": COMMAS.encode(),
    "decimal commas.tsv": COMMAS.replace(";", "\t").encode(),
    "tabs.csv": PLAIN.replace(",", "\t").encode(),
    "commas.tsv": PLAIN.encode(),
    "told.csv": b"sep=;\n" + PLAIN.replace(",", ";").encode(),
    "told in quotes.csv": b'"SEP=|"\r\n' + PLAIN.replace(",", "|").replace("\n", "\r\n").encode(),
    "names with commas.csv": b'"a";"b";"y"\n1,5;-2;p\n0,25;1000;q\n3;;p\n',
    "tabs.txt": PLAIN.replace(",", "\t").encode(),
    "semicolons.txt": COMMAS.encode(),
    "commas.txt": PLAIN.encode(),
    "blanks.txt": BLANKS.encode(),
    "more blanks.txt": b"  a     b    y  \n 1.5   -2    p\n 0.25  1000 'q'\n 3     NA   p\n".replace(b"'q'", b'"q"'),
    "of R.txt": OF_R.encode(),
    "of R.tsv": OF_R.encode(),
    "of R, blanks.txt": OF_R.replace("\t", " ").encode(),
    "packed.csv.gz": gzip.compress(PLAIN.encode()),
    "packed.CSV.GZ": gzip.compress(PLAIN.encode()),
    "packed.tsv.bz2": bz2.compress(PLAIN.replace(",", "\t").encode()),
    "packed.txt.xz": lzma.compress(BLANKS.encode()),
    "packed, two bytes.csv.gz": gzip.compress(COMMAS.encode("utf-16")),
    "two bytes.csv": PLAIN.encode("utf-16"),
    "two bytes.tsv": PLAIN.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
    "a mark.csv": PLAIN.encode("utf-8-sig"),
    "a mark and a separator.csv": ("sep=;\n" + COMMAS).encode("utf-8-sig"),
    "a mark.txt": BLANKS.encode("utf-8-sig"),
    "records.jsonl.gz": gzip.compress(
        "".join(
            json.dumps({"a": a, "b": None if b != b else b, "y": y}) + "\n"
            for (a, b), y in zip(VALUES, LABELS, strict=True)
        ).encode()
    ),
    "records.jsonl": '{"a": 1.5, "b": -2, "y": "p"}\n{"a": 0.25, "b": 1000, "y": "q"}\n{"a": 3, "y": "p"}'.encode(
        "utf-16"
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_samples_in_many_forms(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(SAME[name])
    values, labels = both(path)
    np.testing.assert_array_equal(values, VALUES)
    assert labels == LABELS
    read = read_samples([path], target="y").X
    assert read.names == (name.split(".")[0],)
    assert read.feature_names == {read.names[0]: ("a", "b")}
    assert (read.sample_names is not None) == ("of R" in name)


@pytest.mark.parametrize("cells", ["1,5;2;p\n3;4;q\n", "1;2;p\n3,5;4,5;q\n"])
def test_the_separator_is_the_one_that_gives_all_rows_the_same_number_of_cells(cells, tmp_path):
    (tmp_path / "t.csv").write_text(f"weight, kg;b;y\n{cells}")
    X = read_samples([tmp_path / "t.csv"], target="y").X
    assert X.feature_names == {"t": ("weight, kg", "b")}
    rows = [line.replace(",", ".").split(";")[:2] for line in cells.split()]
    np.testing.assert_array_equal(X["t"], np.array(rows, dtype=float))


@pytest.mark.parametrize("name", ["t.libsvm.gz", "t.txt.gz", "t.txt"])
def test_libsvm_may_be_packed_and_called_txt(name, tmp_path):
    content = SPARSE.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    values, labels = both(tmp_path / name)
    np.testing.assert_array_equal(values.toarray(), [[0.5, 0, 1], [0, 4, 0]])
    assert labels == [1, 0]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le", "mac-roman"])
@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.jsonl", "t.csv.gz"])
def test_encodings_are_given_by_name(name, encoding, tmp_path):
    text = "größe,y\n1,é\n2,ü\n" if "jsonl" not in name else '{"größe": 1, "y": "é"}\n{"größe": 2, "y": "ü"}\n'
    content = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    values, labels = both(tmp_path / name, encoding=encoding)
    np.testing.assert_array_equal(values, [[1], [2]])
    assert labels == ["é", "ü"]
    if encoding != "utf-16-le":
        both_refuse(
            tmp_path / name, "Save it as UTF-8, or name its encoding by `encoding` (--encoding), such as cp1252"
        )
    with pytest.raises(ValueError, match=r"There is no encoding 'klingon'. Name one that Python knows, such as"):
        read_samples([tmp_path / name], encoding="klingon")
    with pytest.raises(ValueError, match="is not encoded in ASCII"):
        read_samples([tmp_path / name], encoding="ascii")


def test_a_byte_order_mark_decides_against_the_encoding_given(tmp_path):
    (tmp_path / "t.csv").write_bytes(PLAIN.encode("utf-8-sig"))
    np.testing.assert_array_equal(both(tmp_path / "t.csv", encoding="cp1252")[0], VALUES)


REFUSED = {
    "may be separated by semicolons or commas": ("csv", "weight, kg;height, cm;y\n80,5;1,8;0\n70,5;1,7;1\n"),
    "Expected 3 columns, got 4": ("csv", "a,b,y\n1,2,0,5\n1,2,0,5\n"),
    "is neither a table, with the names of columns in its first line, nor libsvm": ("txt", "1 2 3\n4 5 6\n"),
    "nor libsvm, with a number and column:value in each line. It begins with 'word'": ("txt", "word\nother\n"),
    "It begins with '1'. Write the names of the columns, or name the file .csv": ("txt", "1\n2\n"),
    "It begins with 'a b c'.": ("txt", "a b c\n1 2\n1 2 3 4\n"),
    "'t.parquet.gz' is packed. Unpack it first": ("parquet.gz", "nothing"),
    "'t.csv.gz' cannot be read as text: Not a gzipped file": ("csv.gz", "nothing"),
    "'t.doc.gz' is not a file of samples: its name must end in one of .parquet": ("doc.gz", "nothing"),
    "'t.xlsx' cannot be read as an Excel workbook: File is not a zip file": ("xlsx", "nothing"),
    "'t.csv' is not encoded in UTF-8: it has bytes that are zero": ("csv", "a\0,\0y\0\n\0001\0,\0001\0\n\0"),
    "'t.feather' cannot be read as Arrow": ("feather", "nothing at all, and more than that"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_unclear_files_are_refused(message, tmp_path):
    suffix, text = REFUSED[message]
    if suffix == "xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    path = tmp_path / f"t.{suffix}"
    path.write_text(text)
    both_refuse(path, message)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.jsonl.bz2", "t.libsvm.xz", "t.txt.gz"])
def test_a_packed_file_that_is_cut_off_gets_a_sentence(name, tmp_path):
    lines = {
        "csv": PLAIN.splitlines(),
        "jsonl": ["", '{"a": 1, "y": 0}'],
        "libsvm": ["", "1 1:2"],
        "txt": ["a b y", "1 2 0"],
    }
    head, *rows = lines[name.split(".")[1]]
    text = "\n".join([head, *(rows[0] for _ in range(50_000))]).lstrip("\n")
    packed = {"gz": gzip, "bz2": bz2, "xz": lzma}[name.split(".")[2]].compress(text.encode())
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    both_refuse(tmp_path / name, f"'{name}' cannot be read as")


# -- decimal signs
def test_targets_and_text_may_have_commas(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n1,5;0,5\n2;1\n")
    assert both(tmp_path / "t.csv")[1] == [0.5, 1.0]
    (tmp_path / "t.csv").write_text("a;y;word\n1,5;0;x, y\n2;1;z\n")
    assert read_samples([tmp_path / "t.csv"], target="y").X["word"].tolist() == ["x, y", "z"]
    (tmp_path / "t.csv").write_text('items,y\n"1,2",0\n"3,4,5",1\n')
    assert read_samples([tmp_path / "t.csv"], target="y").X["items"].tolist() == ["1,2", "3,4,5"]


def test_three_digits_after_a_comma_are_decimals_where_the_file_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;y\n1,234;0,5;p\n5,678;1;q\n")
    np.testing.assert_array_equal(both(tmp_path / "t.csv")[0], [[1.234, 0.5], [5.678, 1]])
    (tmp_path / "t.csv").write_text("a;y\n1,234;p\n0,678;q\n")
    np.testing.assert_array_equal(read_samples([tmp_path / "t.csv"], target="y").X["t"], [[1.234], [0.678]])
    with pytest.raises(ValueError, match="has '1,234', for example: the comma may"):  # the first rows do not tell
        list(read_stream(tmp_path / "t.csv", chunk=1))


SIGNS = {
    "Column 'a' of 't.csv' has '1,234', for example: the comma may separate thousands or": "a;y\n1,234;0\n2;1\n",
    "Column 'y' of 't.csv' has '1,234', for example: the comma": "a;y\n1;1,234\n2;7\n",
    "Column 'b' of 't.csv' has '1,234', for example: the comma": 'a,b,y\n1,"1,234",0\n2,"12,345",1\n',
    "Column 'b' of 't.csv' has '1,234,567', for example: the comma": "a;b;y\n0,5;1,234,567;0\n2;2;1\n",
    "Column 'b' of 't.csv' has '1.234', for example, while other columns have decimal": "a;b;y\n0,5;1.234;0\n2;2;1\n",
    "'t.csv': column 'a' has numbers, and 1 cell that cannot be read as numbers: '2,5'": "a,y\n1,0\n2,1\n\"2,5\",1\n",
}  # fmt: skip


@pytest.mark.parametrize("message", SIGNS)
def test_numbers_that_may_mean_two_things_are_refused(message, tmp_path):
    (tmp_path / "t.csv").write_text(SIGNS[message])
    both_refuse(tmp_path / "t.csv", message)


def test_lines_of_a_stream_may_have_semicolons_and_decimal_commas():
    lines = f"\ufeffsep=;\n{COMMAS}".splitlines(keepends=True)
    parts = list(read_stream(iter(lines), format="csv", chunk=1))
    np.testing.assert_array_equal(np.vstack([X["view0"] for X, _ in parts[:2]]), VALUES[:2])


# -- Arrow and Excel
@pytest.mark.parametrize("form", ["feather", "file", "stream"])
def test_arrow_files(form, tmp_path):
    table = pa.table({"a": [1.5, 0.25, 3.0], "b": [-2.0, 1000.0, None], "y": LABELS})
    path = tmp_path / ("t.feather" if form == "feather" else "t.arrow")
    if form == "feather":
        pa.feather.write_feather(table, path)
    else:
        opened = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
        with opened(path, table.schema) as file:
            file.write_table(table, max_chunksize=2)
    values, labels = both(path)
    np.testing.assert_array_equal(values, VALUES)
    assert labels == LABELS


def as_sheet(path, *rows, **others):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, content in others.items():
        book.create_sheet(title).append(content)
    book.save(path)
    return path


def test_sheets_follow_the_rules_of_csv(tmp_path):
    blank = [None] * 4
    rows = [["a", "b", "sex", "y"], [1.5, "-2", "F", "p"], blank, [0.25, 1000, "M", "q"], [3, "#N/A", "F", "p"], blank]
    path = as_sheet(tmp_path / "t.xlsx", blank, *rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_samples([path], target="y")
    assert read.X.feature_names == {"t": ("a", "b"), "sex": ("sex",)}
    np.testing.assert_array_equal(read.X["t"][:, :2], VALUES)
    assert read.y.tolist() == LABELS
    path = as_sheet(tmp_path / "n.xlsx", ["a", "b", "y"], [1.5, -2, "p"], [0.25, 1000, "q"], [3, None, "p"])
    np.testing.assert_array_equal(both(path)[0], VALUES)


def test_sheets_that_are_not_tables_get_a_sentence(tmp_path):
    path = as_sheet(tmp_path / "t.xlsx", ["My study"], ["a", "b", "y"], [1, 2, 3])
    both_refuse(path, "Row 2 of 't.xlsx' has 3 cells, but 1 columns have names. Name the columns in the first row")
    path = as_sheet(tmp_path / "t.xlsx", ["a", "day", "y"], [1, pd.Timestamp("2020-01-01").to_pydatetime(), 3])
    both_refuse(path, "'t.xlsx': column 'day' has dates or times")
    path = as_sheet(tmp_path / "t.xlsx", ["a", "b", "y"], [1, 2, 3], [2, "#DIV/0!", 4], [2, 5, 4])
    both_refuse(path, "column 'b' has numbers, and 1 cell that cannot be read as numbers: '#DIV/0!'")
    path = as_sheet(tmp_path / "t.xlsx", ["a", "y"], [1, 2], notes=["who"], more=["what"])
    with pytest.warns(UserWarning, match=r"'t.xlsx' has 3 sheets; the first one is read, 'Sheet'"):
        read_samples([path], target="y")


def test_excel_needs_a_package(tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"'t.xlsx' needs the package openpyxl: pip install 'consilience\[frames\]'"):
        read_samples([tmp_path / "t.xlsx"])


# -- samples in columns
GENES = pd.DataFrame({"s1": [1.5, -2.0, 7], "s2": [0.25, 1000.0, 8], "s3": [3, np.nan, 9]}, index=["g1", "g2", "g3"])
NAMED = GENES.rename_axis("gene")
TURNED = {
    "t.csv": lambda path: NAMED.to_csv(path),
    "no corner.csv": lambda path: GENES.to_csv(path),
    "semicolons.csv": lambda path: NAMED.to_csv(path, sep=";", decimal=","),
    "of R.txt": lambda path: path.write_text(GENES.to_csv(sep="\t", na_rep="NA").removeprefix("\t")),
    "packed.tsv.gz": lambda path: NAMED.to_csv(path, sep="\t"),
    "t.parquet": lambda path: NAMED.to_parquet(path),
    "no corner.parquet": lambda path: GENES.to_parquet(path),
    "a column.parquet": lambda path: NAMED.reset_index().to_parquet(path, index=False),
    "t.feather": lambda path: NAMED.reset_index().to_feather(path),
    "t.xlsx": lambda path: as_sheet(
        path, *[["gene", "s1", "s2", "s3"], ["g1", 1.5, 0.25, 3], ["g2", -2, 1000, None], ["g3", 7, 8, 9]]
    ),
}


@pytest.mark.parametrize("name", TURNED)
def test_samples_in_columns(name, tmp_path):
    TURNED[name](tmp_path / name)
    X = read_samples([tmp_path / name], transpose=True).X
    view = name.split(".")[0]
    assert X.feature_names == {view: ("g1", "g2", "g3")}
    assert X.sample_names.tolist() == ["s1", "s2", "s3"]
    np.testing.assert_array_equal(X[view], GENES.T)


def test_rows_of_classes_and_categories_are_read_as_columns_are(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("gene,s1,s2,s3,s4\nkind,01,02,01,02\nsex,F,M,M,F\na__1,1,2,3,\na__2,-1,.5,1e3,0\nok,1,0,1,0\n")
    read = read_samples([path], target="kind", columns=["ok"], transpose=True, views={"a": "a__*", "sex": "sex"})
    assert read.y.tolist() == ["01", "02", "01", "02"]
    assert read.columns["ok"].tolist() == [1, 0, 1, 0]
    assert read.X["sex"].tolist() == ["F", "M", "M", "F"]
    np.testing.assert_array_equal(read.X["a"], [[1, -1], [2, 0.5], [3, 1000], [np.nan, 0]])
    path.write_text("gene,s1,s2\ny,1,0\na,1,2\nb,3,4\n")
    read = read_samples([path], target="y", transpose=True)
    assert read.y.dtype == np.int64
    np.testing.assert_array_equal(read.X["t"], [[1, 3], [2, 4]])


def test_several_files_of_samples_in_columns_are_matched_by_their_header(tmp_path):
    NAMED.to_csv(tmp_path / "rna.csv")
    NAMED[["s3", "s1"]].rename(index="m{}".format).to_csv(tmp_path / "mirna.tsv", sep="\t")
    (tmp_path / "clinic.csv").write_text("who,age,kind\ns2,50,p\ns3,60,q\ns1,70,p\n")
    files = [tmp_path / "rna.csv", tmp_path / "mirna.tsv"]
    X = read_samples(files, transpose=True).X
    assert X.sample_names.tolist() == ["s1", "s2", "s3"]
    assert X.present("mirna").tolist() == [True, False, True]
    assert X.feature_names["mirna"] == ("mg1", "mg2", "mg3")
    read = read_samples([*files, tmp_path / "clinic.csv"], transpose=True, ids="who", target="kind")
    assert read.X.sample_names.tolist() == ["s1", "s2", "s3"]
    assert read.X["clinic"].tolist() == [[70], [50], [60]]
    assert read.y.tolist() == ["p", "p", "q"]
    with pytest.raises(ValueError, match=r"`transpose` .* but 'clinic.csv' has a column 'who' of sample names. Omit"):
        read_samples([tmp_path / "clinic.csv"], transpose=True, ids="who")


TURNED_ERRORS = {
    "'t.csv' has several rows of one name: g1. Rows become columns": "gene,s1\ng1,1\ng1,2\n",
    "'t.csv' has 1 rows without a name in its first column, the first after 1 others": "gene,s1\ng1,1\n,2\n",
    "'t.csv' has two columns named 's1'": "gene,s1,s1\ng1,1,2\n",
    "'t.csv' has no samples to transpose": "gene\ng1\n",
    "'t.csv': column 'g1' has numbers, and 1 cell that cannot be read as numbers: '?'": "gene,s1,s2\ng1,1,?\ng2,2,3\n",
}


@pytest.mark.parametrize("message", TURNED_ERRORS)
def test_files_that_cannot_be_transposed_get_a_sentence(message, tmp_path):
    (tmp_path / "t.csv").write_text(TURNED_ERRORS[message])
    with pytest.raises(ValueError, match=re.escape(message)):
        read_samples([tmp_path / "t.csv"], transpose=True)


def test_matrices_cannot_be_transposed(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"'t.npz' cannot be transposed: only tables with rows and columns"):
        read_samples([tmp_path / "t.npz"], transpose=True)


# -- cells that are missing
MISSING = {
    "t.csv": lambda path: path.write_text("a,b,y\n1.5,-2,p\nn.d.,1000,q\n3,-999,n.d.\n"),
    "t.jsonl": lambda path: path.write_text(
        '{"a": 1.5, "b": -2, "y": "p"}\n{"a": "n.d.", "b": 1000, "y": "q"}\n{"a": 3, "b": -999.0, "y": "n.d."}\n'
    ),
    "t.xlsx": lambda path: as_sheet(path, ["a", "b", "y"], [1.5, -2, "p"], ["n.d.", 1000, "q"], [3, -999, "n.d."]),
    "t.parquet": lambda path: pq.write_table(
        pa.table({"a": [1.5, None, 3.0], "b": [-2, 1000, -999], "y": ["p", "q", "n.d."]}), path
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_cells_are_missing_where_asked_for_and_counted(name, tmp_path):
    MISSING[name](tmp_path / name)
    cells = 2 if name == "t.parquet" else 3
    message = f"{cells} cells of {cells} columns in '{name}' \\(.*b, y\\) are read as missing, .* 'n.d.', '-999'"
    options = {"na_values": ["n.d.", "-999"]}
    with pytest.warns(UserWarning, match=message):
        read = read_samples([tmp_path / name], target="y", **options)
    np.testing.assert_array_equal(read.X["t"], [[1.5, -2], [np.nan, 1000], [3, np.nan]])
    assert read.y.tolist() == ["p", "q", None]
    with pytest.warns(UserWarning, match=message):
        parts = list(read_stream(tmp_path / name, chunk=1, **options))
    np.testing.assert_array_equal(np.vstack([X["view0"] for X, _ in parts]), read.X["t"])


def test_it_is_told_if_no_cell_is_missing(tmp_path):
    (tmp_path / "t.csv").write_text(PLAIN)
    with pytest.warns(UserWarning, match=r"No cell is read as missing because they are 'k.A.'"):
        read_samples([tmp_path / "t.csv"], target="y", na_values="k.A.")


# -- warnings of other packages
def test_no_warning_of_another_package_reaches_the_user(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    data = anndata.AnnData(np.ones((3, 2), dtype=np.float32), obs=pd.DataFrame({"y": LABELS}, index=["a", "a", "b"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.write_h5ad(tmp_path / "t.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_samples([tmp_path / "t.h5ad"], target="y")
    assert read.X.sample_names is None  # one name stands twice
    assert read.y.tolist() == LABELS


@pytest.mark.parametrize(("suffix", "package", "kind"), [("h5ad", "anndata", "AnnData"), ("h5mu", "mudata", "MuData")])
def test_a_damaged_annotated_file_is_named_with_its_kind(suffix, package, kind, tmp_path):
    pytest.importorskip(package)
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"not HDF5")
    with pytest.raises(ValueError, match=rf"'t\.{suffix}' cannot be read as {kind}: "):
        read_samples([path], target="y")


# -- the command line
@pytest.fixture
def commands():
    from cli import commands

    return commands


def test_commands_take_the_form_of_files(commands, tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 20)).round(3)
    genes = pd.DataFrame(values, index=["größe", "g2", "g3"], columns=[f"s{i}" for i in range(20)]).astype(object)
    genes.iloc[:, 2] = "n.d."
    genes.loc["kind"] = ["p", "q"] * 10
    genes.rename_axis("gene").to_csv(tmp_path / "rna.csv", sep=";", encoding="cp1252")
    form = [tmp_path / "rna.csv", "--transpose", "--encoding", "cp1252", "--na", "n.d.", "--na", "k.A."]
    model = tmp_path / "m.cons"
    with pytest.warns(UserWarning, match=r"3 cells of 1 column in 'rna.csv' \(s2\) are read as missing"):
        fitted = commands.summary("fit", *form, "--save", model, "-e", "CoRegularizedRidgeClassifier", "-y", "kind")
    assert fitted["samples"] == 19
    with pytest.warns(UserWarning, match=r"1 of 20 samples have no view at all and are left out: 's2'"):
        rows = commands.predicted(model, *form)
    assert [row["id"] for row in rows] == [f"s{i}" for i in range(20) if i != 2]
    said = commands.refused("predict", model, tmp_path / "rna.csv")
    assert "'rna.csv' is not encoded in UTF-8" in said
    assert "name its encoding by `encoding` (--encoding)" in said


def test_streams_take_the_form_of_files(commands, tmp_path):
    rows = "".join(f"{i % 2},{i % 3};k.A.;{'é' if i % 2 else 'ü'}\n" for i in range(30))
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(f"a__1;b__1;y\n1,5;2,25;é\n{rows}".encode("latin-1")))
    with pytest.warns(UserWarning, match=r"30 cells of 1 column in 't.csv.gz' \(b__1\) are read as missing"):
        ran = commands.summary("stream", path, "--encoding", "latin-1", "--na", "k.A.", "-e", "OnlinePerceptron")
    assert ran["samples"] == 31
    text = "a__1,y\n" + "1,é\n" * 5
    options = ["--format", "csv", "--encoding", "latin-1", "-e", "OnlinePerceptron"]
    assert commands.summary("stream", "-", *options, text=text.encode("latin-1"))["samples"] == 5


@pytest.mark.parametrize("na_values", [(), ("1",)])
def test_large_integers_next_to_missing_ones_are_rounded(na_values, tmp_path):
    path = tmp_path / "large.parquet"
    x = pa.array([2**63, None, 3, 4], pa.uint64())
    pq.write_table(pa.table({"x": x, "z": [1.5, 2.5, 3.5, 4.5], "y": ["u", "v", "u", "v"]}), path)
    X = read_samples([path], target="y", na_values=na_values).X
    parts = [part for part, *_ in read_blocks(path, target="y", na_values=na_values)]
    assert X["large"][0, 0] == parts[0][parts[0].names[0]][0, 0] == 2.0**63


def test_a_column_of_durations_is_no_view_alone_or_with_others(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1.5, 2.5], "long": pa.array([1, 2], pa.duration("s")), "y": ["u", "v"]}), path)
    message = "Column 'long' of 't.parquet' holds timedelta values, which are not a view"
    for columns in ("long", ["x", "long"]):
        both_refuse(path, message, views={"v": columns})


def test_one_missing_truth_value_is_missing_and_not_false(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [True, None, False], "z": [1.5, 2.5, 3.5], "y": ["u", "v", "u"]}), path)
    X = read_samples([path], target="y").X
    np.testing.assert_array_equal(X["t"], [[1, 1.5], [np.nan, 2.5], [0, 3.5]])


def test_lists_have_the_length_of_most_and_of_the_first_among_equals():
    from consilience.io._nested import ListKind, _decide

    def decided(*lengths, keep=False, integers=False):
        return _decide(np.array(lengths, dtype=int), keep, integers)

    assert decided(3, 2, 3, -1) == decided(3, -1, integers=True) == ListKind(True, 3)
    assert decided(2, 3, 3, 2) == decided(-1, 2) == ListKind(True, 2)
    assert decided(3, 2, 2, 3) == ListKind(True, 3)
    assert decided(0, 1) == ListKind(True, 0)
    assert decided(1, 0, 1, -1) == ListKind(True, 1)
    assert decided(3, 2, integers=True) == decided(3, keep=True) == decided(0, 0) == ListKind(False)
    assert decided(-1, -1) is decided() is None


def test_tables_of_r_have_a_name_fewer_than_cells():
    from consilience.io._text import _is_short

    for lines, sign, short in (
        (["a\tb", "r1\t1\t2", "r2\t3\t4"], "\t", True),
        (["a b", "r1 1 2", "r2 3 4"], " ", True),
        (["a\tb", "r1\t1\t2", "r2\t3"], "\t", False),
        (["a\tb", "r1\t1\t2", "7\t3\t4"], "\t", False),
        (["a\tb", "r1\t1\t2", "r2\t3\t"], "\t", False),
        (["a,b", "r1,1,2", "r2,3,4"], ",", False),
        (["a\tb"], "\t", False),
    ):
        assert bool(_is_short(lines, sign)) == short, lines


def test_objects_of_lines_keep_their_rows_and_lines():
    from consilience.io._json_lines import _Records

    records = _Records()
    records.add([{"a": 1}, {"a": 2}], ["x", "y"], 5, 8)
    records.add([{"a": 3}], ["z"], 7, 11)
    assert (records.rows, records.numbers, records.texts) == ([5, 6, 7], [8, 9, 11], ["x", "y", "z"])
    kept = records.without({1})
    assert (kept.values, kept.rows, kept.numbers, kept.texts) == ([{"a": 1}, {"a": 3}], [5, 7], [8, 11], ["x", "z"])


def test_layouts_that_are_not_there_or_not_layouts_are_named(tmp_path):
    from consilience.io.layout import read_layout

    with pytest.raises(FileNotFoundError, match=r"^There is no file '.*nowhere\.toml'\.$"):
        read_layout(tmp_path / "nowhere.toml")
    for text in ("x = 1", "views = 3", "[views]"):
        (tmp_path / "l.toml").write_text(text)
        with pytest.raises(ValueError, match=r"l\.toml' has no table \[views\] with columns or patterns by view\.$"):
            read_layout(tmp_path / "l.toml")
    with pytest.raises(ValueError, match=r"`views` is a dict of view -> columns, .*; got 3\.$"):
        read_layout(3)
    for chosen in ([True], [], [1, "x"], {"x": 1}, 2.5, [None]):
        with pytest.raises(ValueError, match=r"gives the view 'a' as .*; give a column name"):
            read_layout({"a": chosen})
    views, target, ids = read_layout({"a": [0, np.int64(2)], "b": "x*", "c": slice(0, 3), "d": 4}, "y", "name")
    assert views == {"a": [0, 2], "b": ["x*"], "c": slice(0, 3), "d": [4]}
    assert (target, ids) == ("y", "name")


def test_values_go_to_their_rows_also_where_these_are_only_out_of_order():
    from consilience.io.tables import placed

    values, there = placed(np.array([[1.0], [2.0], [3.0]]), np.array([0, 2, 1]), 3)
    assert values[:, 0].tolist() == [1, 3, 2]
    assert there.all()
    same = np.array([1.0, 2.0])
    assert placed(same, np.arange(2), 2)[0] is same
    assert placed(same, np.arange(2), 2)[1] is None
    values, there = placed(same, np.array([2, 0]), 3)
    assert np.array_equal(values, [2, np.nan, 1], equal_nan=True)
    assert there.tolist() == [True, False, True]
    assert placed(np.array(["a"]), np.array([1]), 2)[0].tolist() == [None, "a"]
    with pytest.raises(ValueError, match="A column has 2 values for 3 samples"):
        placed(same, np.arange(3), 4)


def test_kinds_of_csv_columns_have_words():
    import pyarrow as pa

    from consilience.io._delimited import _kind

    kinds = [pa.null(), pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32()]
    assert [_kind(kind) for kind in kinds] == [None, "numbers", "numbers", "true or false", "text", "date32[day]"]
