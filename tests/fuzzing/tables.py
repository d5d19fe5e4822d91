"""Hostile tables in files and in memory: Views, or a sentence."""

import io
import json
from pathlib import Path

import numpy as np

import consilience as cs
from consilience import Views, as_views
from fuzzing.properties import FOLDER, Refused, attempt, describe, take
from strategies import chance, draw_or_odd, pick

# -- tables
NAMES = ["", "x", "x", "y", "id", "a__1", "a__2", "b__1", "__", "a__", "__b", "=1+1", "@sum", "n\nl", "N" * 5000, "é",
         " x"]  # fmt: skip
CELLS = ["", "1", "2.5", "-3", "1e999", "nan", "inf", "NaN", "NA", "true", "False", "x", "1_000", "01", "1e-320", "é",
         " 4 ", "=1+1", "\x00", "null", "2020-01-01", "99999999999999999999", "0x10", '"', "'", "1,5",
         "[1, 2]"]  # fmt: skip
VALUES = [1, 2.5, None, True, "x", [1, 2], [1.0, 2.0], [], [[1]], {"a": 1}, float("nan"), float("inf"), 10**400, "é",
          ["p"]]  # fmt: skip


def fuzz_tables(rng):
    """Read a hostile table: Views, or a sentence."""
    suffix = pick(rng, [".csv", ".csv", ".tsv", ".jsonl", ".jsonl", ".libsvm", ".npz", ".parquet", ".frame", ".odd"])
    if suffix in (".frame", ".odd"):
        return fuzz_frame(rng)
    content = {".csv": csv_bytes, ".tsv": csv_bytes, ".jsonl": json_bytes, ".libsvm": libsvm_bytes, ".npz": npz_bytes,
               ".parquet": parquet_bytes}[suffix](rng)  # fmt: skip
    content = spoil(rng, content)
    path = Path(FOLDER.name) / f"table{suffix}"
    path.write_bytes(content)
    stream = chance(rng, 0.5)
    views = pick(rng, [None] * 9 + ["prefix", {"v": ["x"], "w": ["a__*"]}, {"v": ["nothing"]}, {"v": ["*"]}])
    target, ids = pick(rng, ["y"] * 9 + ["x", "none"]), pick(rng, [None] * 9 + ["id"])
    start, on_error = pick(rng, [0, 0, 0, 1, 2, 5]), pick(rng, ["stop", "skip"])

    def read():
        if stream:
            options = {"target": target, "views": views, "start": start, "on_error": on_error}
            return list(cs.io.read_stream(path, chunk=int(rng.integers(1, 6)), **options))
        return cs.io.read_samples([path], views=views, target=target if target != "none" else None, ids=ids)

    reader = "read_stream" if stream else "read_samples"
    describe(
        lambda: f"{reader}({suffix}, {target=}, {ids=}, {views=}, {start=}, {on_error=}) of {content[:300]!r}", path
    )
    got = take(read, also=(OSError,))
    for X, _ in got if stream else [(got.X, None)]:
        assert isinstance(X, (Views, dict)), "neither Views nor a dict"


def csv_bytes(rng):
    """Return a table in CSV whose header and cells are odd."""
    comma = pick(rng, ["\t", "\t", ",", ",", ","]) if chance(rng, 0.4) else ","
    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 6))]
    if chance(rng, 0.5):
        names = pick(rng, [["a__1", "a__2", "b__1"], ["x", "z"], ["id", "x"]])
    names = [*names, "y"] if chance(rng, 0.95) else names
    usual = pick(rng, [["1", "2.5", "-3"], ["1", "", "2"], CELLS, ["1", "x"], ["1.5", "1e999", "nan"]])
    rows = [names]
    for _ in range(rng.integers(0, 7)):
        count = len(names) if chance(rng, 0.95) else int(rng.integers(0, 7))
        rows.append([draw_or_odd(rng, 0.05, CELLS, usual) for _ in range(count)])

    def quoted(cell):  # where it needs quotes, now and then where it does not, or not where it does
        needs = any(mark in cell for mark in ',\n"\t')
        return '"' + cell.replace('"', '""') + '"' if needs != chance(rng, 0.03) else cell

    lines = [comma.join(quoted(cell) for cell in row) for row in rows]
    return pick(rng, ["\n", "\n", "\r\n", "\r"]).join(lines).encode()


def json_bytes(rng):
    """Return lines of JSON, some of which are odd."""
    usual = pick(rng, [[1, 2.5], [[1, 2], [3, 4.5]], ["x", "yy"], VALUES])
    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 4))]
    lines = []
    for _ in range(rng.integers(0, 7)):
        record = {name: draw_or_odd(rng, 0.04, VALUES, usual) for name in names if chance(rng, 0.9)}
        record["y"] = draw_or_odd(rng, 0.1, [0, 1, "a", None, 1.5, [1], True], ["p", "q"])
        line = json.dumps(record if chance(rng, 0.99) else pick(rng, VALUES))
        lines.append(line if chance(rng, 0.99) else line[: rng.integers(len(line) + 1)])
    return "\n".join(lines).encode()


def libsvm_bytes(rng):
    """Return rows of libsvm, some of which are odd."""
    odd = ["0:1", "-1:2", "99999999999:1", "5", "x:1", "3:nan", "3:1e999", "2:", "2147483648:1", ":"]
    rows = []
    for _ in range(rng.integers(0, 7)):
        pairs = [f"{j}:{rng.integers(-3, 9)}" for j in np.unique(rng.integers(1, 9, size=rng.integers(0, 4)))]
        pairs += [pick(rng, odd)] if chance(rng, 0.06) else []
        rows.append(" ".join([draw_or_odd(rng, 0.03, ["x", "", "nan", "1,2"], ["1", "-1", "0"]), *pairs]))
    return "\n".join(rows).encode()


def npz_bytes(rng):
    """Return an archive of arrays, some of which are odd."""
    n = int(rng.integers(0, 2 if chance(rng, 0.1) else 6))
    arrays = {}
    names = [pick(rng, ["a", "b", "y", "x", "id"]) for _ in range(rng.integers(1, 5))]
    for name in dict.fromkeys([*names, "y"] if chance(rng, 0.9) else names):
        rows = n if chance(rng, 0.93) else int(rng.integers(0, 6))
        usual = [(rows,)] if name in ("y", "id") and chance(rng, 0.9) else [(rows, 2), (rows, 3), (rows,)]
        shape = draw_or_odd(rng, 0.07, [(), (rows, 0), (rows, 1, 2)], usual)
        array = np.asarray(np.round(rng.normal(size=shape) * 2))
        dtype = draw_or_odd(rng, 0.15, ["c16", "U2", "M8[D]", "f2", ">f8", "?", "S2", "i8"], ["f8"])
        arrays[name] = (array.astype("i8") if dtype == "M8[D]" else array).astype(dtype)
        if dtype == "f8" and array.size and chance(rng, 0.1):
            arrays[name].flat[0] = pick(rng, [np.nan, np.inf])
    if chance(rng, 0.03):
        arrays["o"] = np.array([{}, 1], dtype=object)
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


def parquet_bytes(rng):
    """Return a table in Parquet, some columns of which are odd."""
    import pyarrow.parquet as pq

    target = io.BytesIO()
    pq.write_table(arrow_table(rng), target)
    return target.getvalue()


def arrow_table(rng):
    """Return a table of Arrow, some columns of which are odd."""
    import pyarrow as pa

    n = int(rng.integers(0, 6))
    odd = [
        lambda: pa.array([{"a": 1}] * n), lambda: pa.array([b"x"] * n), lambda: pa.nulls(n),
        lambda: pa.array([[1, 2], [1]][i % 2] for i in range(n)), lambda: pa.array([[["x"]]] * n),
        lambda: pa.array(["a", None][i % 2] for i in range(n)), lambda: pa.array([True, None][i % 2] for i in range(n)),
        lambda: pa.array(np.arange(n).astype("M8[s]")), lambda: pa.array(["p"] * n).dictionary_encode(),
        lambda: pa.array([2**63] * n, pa.uint64()), lambda: pa.array([float("nan")] * n),
        lambda: pa.array([[None]] * n), lambda: pa.array([[1]] * n),
    ]  # fmt: skip
    names = list(dict.fromkeys(pick(rng, NAMES) for _ in range(rng.integers(1, 5))))
    columns = [draw_or_odd(rng, 0.15, odd, [lambda: pa.array(rng.normal(size=n))])() for _ in names]
    if chance(rng, 0.85) and "y" not in names:
        names, columns = [*names, "y"], [*columns, pa.array(["u", "v"][i % 2] for i in range(n))]
    if chance(rng, 0.04):
        names = [names[0]] * len(names)
    return pa.Table.from_arrays(columns, names=names)


def spoil(rng, content):
    """Cut a file, put marks or bytes into it, or leave it as it is, which is most common."""
    place = int(rng.integers(len(content) + 1))
    begin, end = content[:place], content[place:]
    changes = [begin, b"", b"\xef\xbb\xbf" + content, b"\n\n  \n" + content, begin + b"\xe9\xff" + end]
    changes += [begin + b"\0" + end, begin + bytes([7]) + end[1:]]
    return pick(rng, [content] * 28 + changes)


def fuzz_frame(rng):
    """Read an odd frame, dict or list by as_views: Views, or a sentence."""
    import pandas as pd

    n = int(rng.integers(0, 5))
    odd = [None, float("nan"), float("inf"), "x", 1, True, 2.5, [1], {}, b"x", 1j, pd.NA, pd.NaT, 10**400,
           np.float32(2), (1, 2)]  # fmt: skip

    def column():
        return rng.normal(size=n) if chance(rng, 0.7) else [pick(rng, odd) for _ in range(n)]

    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 5))]
    forms = {
        "frame": lambda: pd.DataFrame(dict(enumerate(column() for _ in names))).set_axis(names, axis=1),
        "categories": lambda: pd.DataFrame({name: pd.Categorical(list("abcde"[:n])) for name in names}),
        "dict": lambda: {name: column() for name in names},
        "dict of rows": lambda: {name: [column() for _ in range(n)] for name in names},
        "list": lambda: [np.atleast_2d(rng.normal(size=(n, 2))) if chance(rng, 0.8) else column() for _ in names],
        "rows": lambda: [[pick(rng, odd) if chance(rng, 0.1) else 1.5 for _ in range(2)] for _ in range(n)],
        "scalar": lambda: pick(rng, odd),
        "object array": lambda: np.array([pick(rng, odd) for _ in range(4)] + [None], dtype=object)[:4].reshape(2, 2),
        "masked": lambda: np.ma.masked_array(rng.normal(size=(n, 2)), mask=rng.random((n, 2)) > 0.7),
    }
    form = pick(rng, list(forms))
    try:
        X = forms[form]()
    except Exception as error:
        raise Refused("not a table") from error
    choices = ["prefix", {"v": [0]}, {"v": ["x"]}, [slice(0, 1), slice(1, 3)], {"v": [True, False]}]
    views = pick(rng, [None] * 4 + choices)
    describe(lambda: f"as_views({form}: {X!r:.300}, {views=})")
    got = take(lambda: as_views(X, views))
    attempt(got.check_finite)
    attempt(lambda: repr(got) + got._repr_html_())
