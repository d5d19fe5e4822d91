"""One kind for each parser: text of a grammar, or a sound file with damaged bytes, gives a result or a sentence."""

import functools
import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import consilience as cs
from consilience import Views
from consilience.kernels import SubsetTree
from fuzzing.properties import FOLDER, Refused, attempt, describe, take
from fuzzing.tables import (
    CELLS,
    NAMES,
    VALUES,
    arrow_table,
    csv_bytes,
    json_bytes,
    libsvm_bytes,
    npz_bytes,
    parquet_bytes,
)
from strategies import chance, draw_or_odd, draw_tree, pick, write_tree

# bytes that mean something in one of the formats, or nothing in any
TOKENS = {
    "any": [b"\0", b"\xff", b"\xe9", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b" ", b"-", b"1e999", b"nan", b"9" * 40],
    "tree": [b"(", b")", b"()", b"( ", b"(S", b" x", b"\xc3\xa9", b"(S (", b"))"],
    "libsvm": [b":", b"1:1", b" 0:2", b" 7:", b"#", b"qid:3", b",", b"\n\n", b"-1", b" 4294967297:1", b"2:inf"],
    "json": [b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"NaN", b"Infinity", b"\\u0000", b"\\ud800",
             b"{}", b"[]", b"[" * 40, b"1e", b"\\"],
    "csv": [b",", b";", b'"', b'""', b"\t", b"sep=;\n", b"\r\n", b"'", b"1.234,5", b"1,234.5", b",,", b"NA", b"\x1a"],
    "toml": [b"[", b"]", b"=", b'"', b"'''", b"[views]", b"[[views]]", b"{", b"}", b"#", b"1979-05-27", b"true", b".",
             b"\\u0000", b"inf", b"0:3"],
    "binary": [b"\x7f", b"\x80", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"PK\x03\x04", b"PAR1", b"ARROW1"],
}  # fmt: skip


def mutated(rng, content, others, form):
    """Return content after a few edits of bytes: changed, put in, left out, doubled, cut, or joined to another file."""
    data, tokens = bytearray(content), TOKENS["any"] + TOKENS[form]
    for _ in range(1 + int(rng.integers(0, 4))):
        size = len(data)
        at, style = int(rng.integers(size + 1)), int(rng.integers(7))
        length = int(rng.integers(1, 9))
        if style == 0 and at < size:
            data[at] ^= 1 << int(rng.integers(8))
        elif style in (1, 2):
            data[at:at] = pick(rng, tokens)
        elif style == 3:
            del data[at : at + length]
        elif style == 4:
            data[at:at] = data[at : at + length] * int(rng.integers(1, 4))
        elif style == 5:
            data[at : at + length] = pick(rng, tokens)
        elif chance(rng, 0.5):
            del data[at:]
        else:
            other = pick(rng, others)
            data[at:] = other[int(rng.integers(len(other) + 1)) :]
    return bytes(data)


def drawn_bytes(rng, grammar, sound, form):
    """Return the bytes of a file: of a grammar, or a sound file with edits of its bytes."""
    content = grammar(rng) if chance(rng, 0.5) else pick(rng, sound)
    return mutated(rng, content, sound, form) if chance(rng, 0.5) else content


# -- trees
SOUND_TREES = [b"(S (NP I) (VP (V ran)))", b"(S (NP (D the) (N dog)) (VP (V saw) (NP them)))", b"(S)", b"(A b (C d) e)"]


def fuzz_trees(rng):
    """Read trees as strings and as tuples: the same kernel from both, or a sentence."""
    kernel = SubsetTree(pick(rng, [0.4, 1.0]))
    if chance(rng, 0.4):  # sound trees, as tuples and written with any blanks
        trees = [draw_tree(rng, int(rng.integers(1, 12))) for _ in range(1 + int(rng.integers(0, 3)))]
        texts = [write_tree(tree, lambda: pick(rng, [" ", "  ", "\n", "\t", " \r\n"])) for tree in trees]
        describe(lambda: f"SubsetTree of {texts!r:.400}")
        assert np.array_equal(kernel(trees), kernel(texts)), "strings and tuples differ"
        return
    if chance(rng, 0.15):
        samples = [odd_tree(rng)]
    else:
        samples = [
            mutated(rng, pick(rng, SOUND_TREES), SOUND_TREES, "tree").decode("utf-8", "surrogateescape")
            for _ in range(1 + int(rng.integers(0, 2)))
        ]
    deep = isinstance(samples[0], tuple)  # which repr may not write
    path = in_folder("t.trees")
    if not deep:
        path.write_bytes("\n".join(map(str, samples)).encode("utf-8", "surrogateescape"))
    what = "nested tuples" if deep else repr(samples)[:400]
    describe(lambda: f"SubsetTree of {what}", None if deep else path)
    K = take(lambda: kernel(samples))
    assert np.isfinite(K).all(), "the kernel is not finite"
    assert (K >= 0).all(), "a number of fragments is negative"
    wrong = [text for text in samples if isinstance(text, str) and text.count("(") != text.count(")")]
    assert not wrong, f"{wrong[0]!r:.200} is not balanced"


def odd_tree(rng):
    """Return nested tuples that may not be a tree, a deep tree, or another object."""
    tree = draw_tree(rng, 4)
    part = pick(rng, [None, 1, (), ("",), [], ("A", 2), ("A", None), b"A", ("A", ("B",), ()), 2.5, (("A",), "b")])
    deep = ("A", "x")
    for _ in range(int(rng.integers(0, 2000))):
        deep = ("A", deep)
    return pick(
        rng, [(*tree, part), (part, *tree), part, (*tree, (*tree, part)), deep, "(S " * 1500 + "x" + ")" * 1500]
    )


# -- files of samples
def read_drawn(rng, path, content, formats=("jsonl", "csv", "tsv"), blocks=False):
    """Write a file and read it whole, as a stream, as lines or by blocks: Views, or a sentence."""
    reader = pick(rng, ["samples", "samples", "stream", "stream", "lines", "blocks"])
    reader = "stream" if (reader == "blocks" and not blocks) or (reader == "lines" and not formats) else reader
    views = pick(rng, [None] * 8 + ["prefix", {"v": ["x"], "w": ["a__*"]}, {"v": ["*"]}, {"v": ["0:2"]}])
    target = pick(rng, ["y"] * 7 + [None])
    ids, na_values = pick(rng, [None] * 7 + ["id"]), pick(rng, [()] * 7 + [("1",)])
    options = {"views": views, "ids": ids, "na_values": na_values}
    if path.suffix in (".csv", ".jsonl", ".libsvm"):
        options["encoding"] = pick(rng, [None] * 8 + ["latin-1", "utf-16", "cp1252"])
    if path.suffix == ".csv" and reader == "samples":
        options["transpose"] = chance(rng, 0.1)
    if path.suffix == ".libsvm":
        options["libsvm_base"] = pick(rng, [None] * 4 + [0, 1])
    stream = {
        "chunk": int(rng.integers(1, 6)),
        "start": pick(rng, [0, 0, 0, 1, 3]),
        "on_error": pick(rng, ["stop", "skip"]),
    }
    format, size = pick(rng, formats) if formats else "", int(rng.integers(1, 4))
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    described = {**options, "target": target} | (stream if reader in ("stream", "lines") else {})
    describe(lambda: f"{reader}({path.name}, {described}) of {content[:300]!r}", path)

    def read():
        if reader == "samples":
            return [cs.io.read_samples([path], target=target, **options).X]
        if reader == "blocks":
            return [X for X, _, _ in cs.read_blocks(path, target=target, size=size, **options)]
        stream["target"] = target or "y"
        if reader == "lines":
            lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogateescape")
            chosen = {key: options[key] for key in ("views", "ids", "na_values")}
            return [X for X, _ in cs.io.read_stream(lines, format=format, **stream, **chosen)]
        return [X for X, _ in cs.io.read_stream(path, **stream, **options)]

    for X in take(read, also=(OSError, MemoryError)):
        assert isinstance(X, (Views, dict)), f"{type(X).__name__} in place of Views"
        for name in X.names if isinstance(X, Views) else ():
            block = X[name]
            assert block is None or block.shape[0] == len(X), f"view {name} has {block.shape[0]} of {len(X)} rows"
            if sp.issparse(block):
                assert block.indices.size == 0 or block.indices.min() >= 0, "an index is negative"
                assert block.indices.size == 0 or block.indices.max() < block.shape[1], "an index is too large"


def in_folder(name):
    """Return a file of this process's folder."""
    return Path(FOLDER.name) / name


SOUND_LIBSVM = [
    b"1 1:2 3:4.5\n-1 2:2 3:1e-3\n",
    b"0 0:1\n1 5:2 # note\n",
    b"2 qid:1 1:1\n3 qid:1 2:1\n",
    b"1\n-1 1:1\n",
]


def fuzz_libsvm(rng):
    """Read rows of libsvm, as .libsvm or .txt."""
    content = drawn_bytes(rng, libsvm_bytes, SOUND_LIBSVM, "libsvm")
    read_drawn(rng, in_folder(f"t{pick(rng, ['.libsvm', '.libsvm', '.libsvm', '.txt'])}"), content, formats=())


SOUND_JSON = [
    b'{"a": [1, 2], "b": 2.5, "y": "p"}\n{"a": [3, 4], "b": null, "y": "q"}\n',
    b'{"t": "some text", "m": {"k": 1, "l": [2, 3]}, "y": 0}\n{"t": "", "m": {"k": 2, "l": [4, 5]}, "y": 1}\n',
    b'{"a__1": 1, "a__2": 2, "id": "x", "y": true}\n\n{"a__1": 3, "a__2": 4, "id": "z", "y": false}\n',
    b'{"w": {"u": 1}, "s": ["p", "q"], "y": 1}\n{"w": {"v": 2}, "s": [], "y": 2}\n',
]


def fuzz_json(rng):
    """Read JSON lines, plain or packed."""
    content = drawn_bytes(rng, json_bytes, SOUND_JSON, "json")
    name = "t.jsonl.gz" if chance(rng, 0.05) else "t.jsonl"
    read_drawn(rng, in_folder(name), content, formats=("jsonl",), blocks=chance(rng, 0.4))


SOUND_CSV = [
    b"a__1,a__2,b__1,y\n1,2,3,p\n4,5,6,q\n7,,9,p\n",
    b"id;x;y\r\nr1;1,5;u\r\nr2;2,5;v\r\n",
    b',x,z,y\nr1,1,"a, b",0\nr2,2,"say ""so""",1\n',
    b"x\ty\n1\ta\n2\tb\n",
    b"sep=;\nx;s;y\n1;F;0\n2;M;1\n3;F;0\n",
    b"\xef\xbb\xbfx,y\n1.5e3,1\nNA,0\n",
    b"x,when,y\n1,2020-01-01,a\n2,2020-01-02,b\n",
]


def fuzz_csv(rng):
    """Read tables of text, with any separator, plain or packed."""
    content = drawn_bytes(rng, csv_bytes, SOUND_CSV, "csv")
    name = pick(rng, ["t.csv"] * 8 + ["t.tsv", "t.txt", "t.csv.gz"])
    read_drawn(rng, in_folder(name), content, formats=("csv", "tsv"), blocks=chance(rng, 0.3))


# -- TOML
SOUND_TOML = [
    b'target = "y"\nid = "name"\n[views]\naudio = "mfcc_*"\nvideo = ["r", "g", "b"]\n',
    b'[views]\na = ["a__?"]\n"b c" = \'x\'\n# note\n',
    b"[views]\nfirst = '0:50'\nrest = [50, 51]\n",
    b'views = {a = "x", b = ["y", "z"]}\n',
]


def toml_bytes(rng):
    """Return a TOML file with a table of views, whose values may be odd."""
    odd = ["1", "1.5", "true", "[]", "[1, 2]", "[true]", "{a = 1}", '["x", 1]', "1979-05-27", '""', '[["x"]]', "inf"]
    usual = ['"x"', '["x", "y"]', '"a__*"', "'0:3'", '["[ab]?"]', '"*"', '"[!"']
    lines = [f"{key} = {draw_or_odd(rng, 0.2, odd, usual)}" for key in ("target", "id", "more") if chance(rng, 0.3)]
    lines += [pick(rng, ["[views]"] * 9 + ["[view]", "[[views]]", "[views.a]", "views = 3"])]
    for key in ["a", "b c", "é", "a"][: int(rng.integers(0, 4))]:
        lines.append(f"{key!r} = {draw_or_odd(rng, 0.15, odd, usual)}")
    return "\n".join(lines).encode()


def fuzz_toml(rng):
    """Read which columns make which view from a TOML file, and divide a small table by it."""
    content = drawn_bytes(rng, toml_bytes, SOUND_TOML, "toml")
    path = in_folder("views.toml")
    path.write_bytes(content)
    describe(lambda: f"read_layout of {content[:300]!r}", path)
    views, target, ids = take(lambda: cs.io.read_layout(path), also=(OSError,))
    assert views, "there are no views"
    for name, chosen in views.items():
        assert isinstance(name, str), f"the name {name!r} is not text"
        assert chosen, f"the view {name!r} has no columns"
        assert all(isinstance(own, str) for own in chosen) or all(type(own) is int for own in chosen), f"{chosen!r}"
    assert all(own is None or isinstance(own, str) for own in (target, ids)), f"{target=} {ids=}"
    if chance(rng, 0.1):
        table = in_folder("toml.csv")
        table.write_bytes(b"name,x,y,mfcc_1,r,g,b,a__1\nu,1,2,3,4,5,6,7\nv,2,3,4,5,6,7,8\n")
        attempt(lambda: cs.io.read_samples([table], views=path))


# -- binary files
def fuzz_npz(rng):
    """Read an NPZ file: odd arrays, damaged headers of arrays with right checksums, or damaged bytes."""
    content = npz_bytes(rng)
    if chance(rng, 0.4):
        content = repacked(rng, content, [npz_bytes(rng)], header=b"{'descr'")
    elif chance(rng, 0.4):
        content = mutated(rng, content, [npz_bytes(rng)], "binary")
    read_drawn(rng, in_folder("t.npz"), content, formats=())


NPY_CHANGES = [
    (b"(", b"(9999999, "), (b"(", b"(-1, "), (b"False", b"True"), (b"f8", b"O8"), (b"f8", b"V8"), (b"<f8", b">f4"),
    (b"'shape'", b"'shope'"), (b"f8", b"f9"), (b"{", b"["), (b"\x93", b"\x94"), (b"(", b"(2**40, "), (b"<f8", b"<U9"),
]  # fmt: skip


def repacked(rng, content, others, header=b""):
    """Return an archive in which one member is damaged and all checksums are right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = pick(rng, list(members))
    style = pick(rng, ["header", "header", "bytes", "drop", "rename", "cut"])
    if style == "header" and header and header in members[name]:
        old, new = pick(rng, NPY_CHANGES)
        members[name] = members[name].replace(old, new, 1)
    elif style == "drop":
        del members[name]
    elif style == "rename":
        members[pick(rng, ["y.npy", "..", "", "a", "a.npy.npy", "é", "/etc/x"])] = members.pop(name)
    elif style == "cut":
        members[name] = members[name][: int(rng.integers(len(members[name]) + 1))]
    else:
        members[name] = mutated(rng, members[name], others, "binary")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if chance(rng, 0.3) else 0) as archive:
        for own, value in members.items():
            archive.writestr(zipfile.ZipInfo(own), value)
    return target.getvalue()


def fuzz_arrow(rng):
    """Read a Parquet, Feather or Arrow file of odd columns, or with damaged bytes."""
    suffix = pick(rng, [".parquet", ".parquet", ".feather", ".arrow"])
    content = parquet_bytes(rng) if suffix == ".parquet" else b""
    if not content:
        import pyarrow as pa

        table, target = arrow_table(rng), io.BytesIO()
        try:
            with pick(rng, [pa.ipc.new_file, pa.ipc.new_file, pa.ipc.new_stream])(target, table.schema) as writer:
                writer.write_table(table)
        except pa.ArrowException as error:
            raise Refused("this table is not written as Arrow") from error
        content = target.getvalue()
    if chance(rng, 0.3):
        content = mutated(rng, content, [content], "binary")
    read_drawn(rng, in_folder(f"t{suffix}"), content, formats=(), blocks=True)


@functools.cache
def sound_books():
    """Return the bytes of an Excel, an AnnData and a MuData file, of those whose packages are installed."""
    made = {}
    try:
        import openpyxl

        book, target = openpyxl.Workbook(), io.BytesIO()
        for row in (["id", "x", "s", "y"], ["r1", 1, "u", "p"], ["r2", 2.5, "v", "q"], ["r3", None, "u", "p"]):
            book.active.append(row)
        book.save(target)
        made[".xlsx"] = target.getvalue()
    except ImportError:
        pass
    try:
        import anndata
        import pandas as pd

        names = ["r1", "r2", "r3"]
        obs = pd.DataFrame({"y": pd.Categorical(["p", "q", "p"]), "x": [1.0, 2.0, 3.0]}, index=names)
        data = anndata.AnnData(np.arange(6.0).reshape(3, 2), obs=obs, obsm={"pca": np.ones((3, 2))})
        data.layers["counts"] = sp.csr_matrix(data.X)
        data.write_h5ad(in_folder("sound.h5ad"))
        made[".h5ad"] = in_folder("sound.h5ad").read_bytes()
        import mudata

        mudata.MuData({"a": data, "b": data[:2].copy()}).write(in_folder("sound.h5mu"))
        made[".h5mu"] = in_folder("sound.h5mu").read_bytes()
    except ImportError:
        pass
    return made


@functools.cache
def number_places(suffix):
    """Return the places of the bytes of numbers in an HDF5 file: HDF5 itself crashes on damaged structures."""
    import h5py

    places = []

    def visit(name, node):
        if isinstance(node, h5py.Dataset) and node.dtype.kind in "iuf" and node.id.get_offset() is not None:
            places.extend(range(node.id.get_offset(), node.id.get_offset() + node.id.get_storage_size()))

    with h5py.File(io.BytesIO(sound_books()[suffix])) as file:
        file.visititems(visit)
    return places


def fuzz_books(rng):
    """Read an Excel workbook of odd cells or with damaged parts, or an annotated file with damaged bytes."""
    suffix = pick(rng, [*[".xlsx"] * 4, ".h5ad", ".h5mu"])
    if suffix not in sound_books():
        raise Refused("the package for this format is not installed")
    content = sound_books()[suffix]
    if suffix == ".xlsx" and chance(rng, 0.5):
        import openpyxl

        book, target = openpyxl.Workbook(), io.BytesIO()
        odd = [cell for cell in CELLS + NAMES if cell.isprintable()]
        for _ in range(int(rng.integers(0, 4))):
            usual = [1, 2.5, "x", "y", None, True]
            book.active.append([draw_or_odd(rng, 0.2, odd, usual) for _ in range(int(rng.integers(0, 4)))])
        book.save(target)
        content = target.getvalue()
    elif suffix == ".xlsx" and chance(rng, 0.7):
        content = repacked(rng, content, [content[:200]])
    elif suffix != ".xlsx":
        data, places = bytearray(content), number_places(suffix)
        for _ in range(int(rng.integers(0, 4))):
            data[pick(rng, places)] ^= int(rng.integers(1, 256))
        content = bytes(data[: int(rng.integers(len(data)))] if chance(rng, 0.2) else data)
    read_drawn(rng, in_folder(f"t{suffix}"), content, formats=())


def warm_up():
    """Read one sound file of each kind, so that packages are imported and functions compiled."""
    SubsetTree()(["(S (NP I))"])
    in_folder("t.csv").write_bytes(SOUND_CSV[0])
    cs.io.read_samples([in_folder("t.csv")], target="y")
    list(cs.read_blocks(in_folder("t.csv"), target="y"))
    in_folder("t.jsonl").write_text("".join(json.dumps({"v": value, "y": 0}) + "\n" for value in VALUES[:2]))
    cs.io.read_samples([in_folder("t.jsonl")], target="y")
    parquet_bytes(np.random.default_rng(0))
    for suffix, content in sound_books().items():
        path = in_folder(f"t{suffix}")
        path.write_bytes(content)
        cs.io.read_samples([path])
