"""Hostile strings, and files that carry code or unpack to more than memory."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

# -- strings
STRINGS = (
    "<script>alert(1)</script>", "</script><x-evil>", "<x-evil onevil=1>", '"><x-evil>', "'><x-evil>", "' onevil='1",
    '" onevil="1', "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "</title><x-evil>", "</style><x-evil>",
    "<!--", "-->", "]]>", "<![CDATA[<x-evil>]]>", "</td></table><x-evil>", "&lt;x-evil&gt;", "&#60;x-evil&#62;",
    "javascript:alert(1)", "`<x-evil>`", "<a href=http://evil.example>", "<meta http-equiv=refresh content=0>",
    "<base href=//evil.example>", "{{7*7}}", "${7*7}", "<%= 7 %>",
    "\x1b[2J", "\x1b]0;title\x07", "\x1b[31mred", "\x9b2J", "\x07", "\x08\x08", "\x7f", "\r overwritten", "a\r\nb",
    "a\nError: forged.", "\x00", "\x0c", "\u202eright to left", "\u2066isolate", "\u2028line", "\u2029", "\u202dover",
    "\U000e0041tag", "\ud800", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "\r=1", " =1",
    "\uff1d1", "=HYPERLINK(\"http://evil.example\")", "a;=1+1", 'a"\n=1', "a,=1", "-5", "'=1", ";=1", "\n=1",
    "../../../etc/passwd", "..\\..\\x", "/etc/passwd", "~/.ssh/id", "file:///etc/passwd", "CON", "a/../../b", "%2e%2e/",
    "%s%s%s%n", "{0.__class__}", "{}", "{y}", "%(name)s", "%d", "$(touch canary)", "`touch canary`", "; touch canary",
    "| touch canary", "__import__('os').system('touch canary')", "!!python/object:os.system", "__class__", "__reduce__",
    "[bold]x[/bold]", "[link=http://evil.example]x[/link]", "\\x1b[2J", "\\", "'", '"', "#", "--out", "-rf", "NaN",
    "None", "null", "x" * 5000, "W" * 300 + "<x-evil>", "\u0301" * 50, "\ufeffa", "İi", "ß", "🙂" * 60, "", " ", "a  b",
)  # fmt: skip
_ALLOWED = {"\n", "\t"}
_TURNS = {*map(chr, range(0x2028, 0x202F)), *map(chr, range(0x2066, 0x206A)), *map(chr, range(0xE0000, 0xE0080))}


def changes_a_terminal(text: str) -> str | None:
    """Return the first character that would color, move, hide or turn what a terminal shows; None if there is none."""
    for sign in text:
        code = ord(sign)
        control = code < 32 or 127 <= code < 160 or 0xD800 <= code < 0xE000
        if (control and sign not in _ALLOWED) or sign in _TURNS:
            return f"U+{code:04X}"
    return None


# -- files that carry code
class Code:
    """Runs when it is unpickled: it makes a file."""

    def __init__(self, canary: str):
        self.canary = canary

    def __reduce__(self) -> Any:
        return (open, (self.canary, "w"))


def npz_bytes(**arrays: Any) -> bytes:
    """Return an NPZ file."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def zip_bytes(members: dict[str, bytes], *, packed: bool = False) -> bytes:
    """Return a zip archive with any names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def model_file(payload: bytes, magic: bytes = b"consilience model\n") -> bytes:
    """Return a model file with a valid header around any payload."""
    head = {"format": 1, "version": "1", "sha256": hashlib.sha256(payload).hexdigest()}
    return magic + json.dumps(head).encode() + b"\n" + payload


def node(module: str, name: str, loader: str, **more: Any) -> bytes:
    """Return a model file whose schema asks for an object of another type."""
    content = {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **more}
    schema = {**content, "protocol": 2, "_skops_version": "0.12"}
    return model_file(zip_bytes({"schema.json": json.dumps(schema).encode(), "x.npy": b"", "evil.bin": b"x"}))


def files_with_code(canary: str) -> dict[str, bytes]:
    """Return data and model files that try to run code, by name."""
    evil = pickle.dumps(Code(canary))
    objects = np.array([Code(canary), None], dtype=object)
    text, plain = (
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"touch x"'},
        b"1,2\n",
    )
    arguments = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "__id__": 2,
        "content": [text],
    }
    empty = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "__id__": 3, "content": {},
             "key_types": {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": 4,
                           "content": []}}  # fmt: skip
    files = {
        f"pickle{end}": evil for end in (".npz", ".cons", ".csv", ".parquet", ".feather", ".xlsx", ".h5ad", ".jsonl")
    }
    files |= {
        "objects.npz": npz_bytes(a=objects, y=np.arange(2)),
        "only.npz": zip_bytes({"a.npy": evil}),
        "outside.npz": zip_bytes({f"../../{Path(canary).name}": evil, "a.npy": npy(np.ones((2, 2)))}),
        "rooted.npz": zip_bytes({canary: b"x", "a.npy": npy(np.ones((2, 2))), "y.npy": npy(np.arange(2))}),
        "outside.cons": model_file(zip_bytes({canary: b"x", "../../x": b"x", "schema.json": b"{}"})),
        "pickled.cons": model_file(evil),
        "pickled state.cons": model_file(evil, b"consilience checkpoint\n"),
        "objects.cons": model_file(zip_bytes({"schema.json": b"{}", "a.npy": npy(objects)})),
        "csv.csv": f'a,b,y\n"=cmd|/C touch {canary}",2,1\n__import__("os").system("touch {canary}"),3,0\n'.encode(),
        "lines.jsonl": json.dumps({"a": {"__reduce__": ["os.system", "touch x"]}, "y": 1}).encode() + b"\n",
        "outside.xlsx": zip_bytes({canary: b"x", "[Content_Types].xml": b"<Types/>"}),
        "entities.xlsx": workbook_with(b'<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]>'),
    }  # fmt: skip
    for tree in ({"object": "os.system", "state": {}}, {"object": "builtins.eval", "state": {}},
                 {"object": "../x", "state": {}}, {"object": "Views", "state": {"__class__": "x"}},
                 {"object": "PerView", "state": {"__reduce__": "x", "__dict__": {"dict": []}}},
                 {"scalar": ["O", "x"]}, {"array": "|O", "shape": [1]}):  # fmt: skip
        payload = json.dumps(tree).encode() + b"\n" + plain
        files[f"state {len(files)}.cons"] = model_file(payload, b"consilience checkpoint\n")
    for module, name in (("os", "system"), ("builtins", "eval"), ("builtins", "exec"), ("subprocess", "Popen"),
                         ("builtins", "getattr"), ("importlib", "import_module"), ("shutil", "rmtree"),
                         ("consilience.io.writing", "os"), ("numpy", "load"), ("pickle", "loads"),
                         ("joblib", "load"), ("operator", "methodcaller"), ("functools", "partial")):  # fmt: skip
        for loader in ("TypeNode", "FunctionNode", "ObjectNode", "PartialNode", "MethodNode", "OperatorFuncNode",
                       "ReduceNode", "SparseMatrixNode", "NdArrayNode", "UnknownNode"):  # fmt: skip
            files[f"{module}.{name} {loader}.cons"] = node(
                module, name, loader, content={"module_path": module, "function": name, "func": text, "args": arguments,
                                               "kwargs": empty, "obj": text, "attrs": arguments, "shape": arguments},
                type="json", file=f"../../{Path(canary).name}", args=arguments, attrs=arguments,
            )  # fmt: skip
    return files | arrow_with_code(evil) | annotated_with_code(evil)


def npy(array: Any) -> bytes:
    """Return an array as NumPy writes it, also with pickled objects."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def workbook_with(head: bytes) -> bytes:
    """Return an Excel file whose sheet begins with a declaration, and has a cell of its entity."""
    from openpyxl import Workbook

    out = io.BytesIO()
    book = Workbook()
    book.active.append(["a", "y"])
    book.active.append([1, "text"])
    book.save(out)
    with zipfile.ZipFile(out) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if "sheet1" in name)
    start = b'<?xml version="1.0"?>'
    body = members[name][members[name].index(b"<worksheet") :].replace(b"text", b"&e;" if head else b"text")
    return zip_bytes({**members, name: start + head + body})


def arrow_with_code(evil: bytes) -> dict[str, bytes]:
    """Return files of Arrow with an extension type that older versions of pyarrow unpickle."""
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        return {}
    told = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": evil}
    table = pa.table([pa.array([1.0, 2.0]), pa.array([0, 1])],
                     schema=pa.schema([pa.field("a", pa.float64(), metadata=told), pa.field("y", pa.int64())],
                                      metadata={b"pandas": evil}))  # fmt: skip
    files = {}
    for name, write in (("code.parquet", parquet.write_table), ("code.feather", feather.write_feather)):
        out = io.BytesIO()
        write(table, out)
        files[name] = out.getvalue()
    return files


def annotated_with_code(evil: bytes) -> dict[str, bytes]:
    """Return AnnData with pickled bytes in it; nothing where anndata is missing."""
    try:
        import anndata
        import h5py
        import pandas as pd
    except ImportError:
        return {}
    out = io.BytesIO()
    path = Path(f"/tmp/hostile-{os.getpid()}.h5ad")
    try:
        own = anndata.AnnData(np.ones((3, 2)), obs=pd.DataFrame({"y": [0, 1, 0]}, index=list("abc")))
        own.write_h5ad(path)
        with h5py.File(path, "r+") as file:
            file["uns"].create_dataset("pickled", data=np.void(evil))
            file["uns"].attrs["code"] = np.void(evil)
        out.write(path.read_bytes())
    finally:
        path.unlink(missing_ok=True)
    return {"code.h5ad": out.getvalue()}


# -- files that unpack to more than they should
def few_bombs(megabytes: int) -> dict[str, bytes]:
    """Return some of the bombs, those that are made at once."""
    part = (b"1.5,2.5,1\n" * 104_858)[: 1 << 20]
    array = npy(np.zeros((megabytes << 17, 1)))
    payload = zip_bytes({"schema.json": b"{}", "0.npy": array}, packed=True)
    return {
        "bomb.csv.gz": gzip.compress(b"a,b,y\n") + gzip.compress(part) * megabytes,
        "bomb.npz": zip_bytes({"a.npy": array}, packed=True), "bomb.cons": model_file(payload),
    }  # fmt: skip


def bombs(megabytes: int) -> dict[str, bytes]:
    """Return small files that unpack to many megabytes, by name."""
    part = (b"1.5,2.5,1\n" * 104_858)[: 1 << 20]
    lines = (b'{"a": [1.0, 2.0], "y": 1}\n' * 40_000)[: 1 << 20]
    zeros = bytes(megabytes << 20)
    packers = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    files = {}
    for end, pack in packers.items():
        files[f"bomb.csv.{end}"] = pack(b"a,b,y\n") + pack(part) * megabytes
        files[f"bomb.jsonl.{end}"] = pack(lines) * megabytes
        files[f"one line.jsonl.{end}"] = pack(bytes(1 << 20).replace(b"\0", b" ")) * megabytes
        files[f"bomb.libsvm.{end}"] = pack((b"1 1:0.5 2:0.5\n" * 74_900)[: 1 << 20]) * megabytes
    array = npy(np.zeros((len(zeros) // 8, 1), dtype=np.float64))
    members = {"a.npy": array, "y.npy": npy(np.zeros(3))}
    files["bomb.npz"] = zip_bytes(members, packed=True)
    files["forged.npz"] = forged(files["bomb.npz"], len(array))
    files["bomb.xlsx"] = workbook_bomb(b" " * len(zeros))
    laughs = b"".join(
        f'<!ENTITY {"abcdefghij"[k]} "{f"&{chr(96 + k)};" * 10 if k else "ha" * 10}">'.encode() for k in range(9)
    )
    files["laughs.xlsx"] = workbook_with(b"<!DOCTYPE d [" + laughs + b'<!ENTITY e "&i;">]>')
    schema = b'{"__class__": "x"}'
    files["bomb.cons"] = model_file(zip_bytes({"schema.json": schema, "0.npy": array}, packed=True))
    files["schema.cons"] = model_file(zip_bytes({"schema.json": b" " * len(zeros)}, packed=True))
    files["forged.cons"] = model_file(
        forged(zip_bytes({"0.npy": array, "schema.json": schema}, packed=True), len(array))
    )
    inner = zip_bytes({"data.npy": array}, packed=True)
    files["nested.cons"] = model_file(zip_bytes({"schema.json": schema, "0.npz": inner}))
    tree = json.dumps({"array": "<f8", "shape": [len(zeros) // 8]}).encode() + b"\n"
    files["state.cons"] = model_file(tree, b"consilience checkpoint\n")
    return files | arrow_bombs(megabytes)


def forged(archive: bytes, size: int) -> bytes:
    """Return an archive that says of its largest member to unpack to a few bytes."""
    return archive.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))


def workbook_bomb(content: bytes) -> bytes:
    """Return an Excel file with a member that unpacks to much."""
    with zipfile.ZipFile(io.BytesIO(workbook_with(b""))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if "sheet1" in name)
    return zip_bytes({**members, name: members[name].replace(b"<sheetData>", b"<sheetData>" + content)}, packed=True)


def arrow_bombs(megabytes: int) -> dict[str, bytes]:
    """Return files of Arrow with columns that are equal numbers, or one long string in many rows."""
    try:
        import pyarrow as pa
        from pyarrow import feather, ipc, parquet
    except ImportError:
        return {}
    n = (megabytes << 20) // 8
    table = pa.table({"a": np.zeros(n), "y": np.zeros(n, dtype=np.int8)})
    none = np.zeros(n // 40 + 1, dtype=np.int32)  # 40 numbers in a list
    lists = pa.ListArray.from_arrays(np.arange(len(none) + 1, dtype=np.int32) * 40, np.zeros(40 * len(none)))
    one_list = pa.ListArray.from_arrays(np.array([0, n], dtype=np.int32), np.zeros(n))
    rows = np.zeros(megabytes, dtype=np.int32)  # of 1 MB each
    strings = pa.DictionaryArray.from_arrays(rows, ["x" * (1 << 20)])
    tokens = pa.ListArray.from_arrays(np.arange(len(rows) + 1, dtype=np.int32), strings)
    long, plain = (
        {"compression": "zstd", "store_schema": False, "dictionary_pagesize_limit": 1 << 22},
        {"store_schema": False},
    )
    files = {
        "bomb.parquet": _written(parquet.write_table, table, compression="zstd"),
        "bomb.feather": _written(feather.write_feather, table, compression="zstd"),
        "lists.parquet": _written(parquet.write_table, pa.table({"a": lists, "y": none}), compression="zstd"),
        "one list.parquet": _written(parquet.write_table, pa.table({"a": one_list, "y": [0]}), compression="zstd"),
        "lists.feather": _written(feather.write_feather, pa.table({"a": lists, "y": none}), compression="lz4"),
        "strings.parquet": _written(parquet.write_table, pa.table({"a": strings, "y": rows}), **long),
        "tokens.parquet": _written(parquet.write_table, pa.table({"a": tokens, "y": rows}), **long),
        "prefixes.parquet": _written(
            parquet.write_table, pa.table({"a": strings.cast(pa.string())[: min(megabytes, 256)], "y": rows[:256]}),
            use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}, **plain),
        "strings.feather": _written(feather.write_feather, pa.table({"a": strings, "y": rows}), compression="lz4"),
        "nulls.feather": _written(feather.write_feather, pa.table({"a": pa.nulls(n), "y": pa.nulls(n)})),
    }  # fmt: skip
    out = io.BytesIO()
    with ipc.new_stream(out, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return files | {"bomb.arrow": out.getvalue()}


def _written(write: Any, table: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    write(table, out, **options)
    return out.getvalue()
