"""Model files and checkpoints that are damaged: a sentence, or a model that predicts or refuses."""

import functools
import hashlib
import io
import json
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import cases
import consilience as cs
from consilience import Views
from consilience.kernels import RBF, Spectrum
from fuzzing.estimators import FUSIONS
from fuzzing.properties import FOLDER, Refused, attempt, describe, show
from strategies import chance, pick


# -- model files
@functools.cache
def pool():
    """Return what is saved, as (header, members of the file, object, data, targets): made once a process."""
    rng = np.random.default_rng(7)
    n = 8
    A, B, t = rng.normal(size=(n, 2)), np.round(rng.normal(size=(n, 3))), rng.normal(size=n)
    mask = np.ones((n, 2), dtype=bool)
    mask[2, 0] = mask[5, 1] = False
    X = Views({"a": A, "b": sp.csr_array(B)}, mask=mask)
    S, strings = Views(a=A, s=["ab", "b", None, "a", "", "ba", "c", "ca"]), {"a": RBF(0.5), "s": Spectrum(1)}
    G, grams = Views(a=A, g=A @ A.T, precomputed="g"), {"a": RBF(0.5), "g": "precomputed"}
    known = [(model, X) for model in cases.LEARNERS.values()]
    known += [(cs.CoRegularizedRidge(RBF(0.5), n_components=3, random_state=0), X)]
    known += [(cs.KernelPerceptron(RBF(0.5), budget=3, average=True, shuffle=False), X)]
    for cls in (cs.CoRegularizedRidge, cs.MultipleKernelRidgeClassifier, cs.MaxMarginClassifier, cs.KernelPerceptron):
        known += [(cls(kernel=strings), S), (cls(kernel=grams), G)]
    saved = [(X, None, None), (G[[3, 1, 4]], None, None)]
    saved += [(cs.Nystroem(RBF(0.5), n_components=3, random_state=0), X, None)]
    for i, (model, data) in enumerate(known):
        numbers = np.column_stack([t, t * t]) if isinstance(model, cs.OutputKernelRidge) else t
        saved.append((clone(model), data, np.arange(n) % (2 + i % 2) if is_classifier(model) else numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(*members_of(m if data is None else m.fit(data, y)), m, data, y) for m, data, y in saved]


def members_of(model):
    """Return the header and the members of a model file, with numbers in place of addresses, so that cases repeat."""
    path = Path(FOLDER.name) / "whole.cons"
    cs.save(model, path)
    _, head, payload = path.read_bytes().split(b"\n", 2)
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    schema = members.pop("schema.json").decode()
    ids = dict.fromkeys(re.findall(r'"__id__": (\d+)', schema))
    numbers = {old: str(1000 + i) for i, old in enumerate(ids)}
    schema = re.sub(r"\d{12,}", lambda found: numbers.get(found.group(), found.group()), schema)
    renamed = {re.sub(r"\d{12,}", lambda found: numbers.get(found.group(), "0"), k): v for k, v in members.items()}
    return json.loads(head), {**renamed, "schema.json": schema.encode()}


def model_bytes(head, members, digest=True, compress=False):
    """Return the bytes of a model file; with `digest`, the checksum is right whatever the members hold."""
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if compress else 0) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    payload = target.getvalue()
    head = {**head, "sha256": hashlib.sha256(payload).hexdigest()} if digest else head
    return b"consilience model\n" + json.dumps(head).encode() + b"\n" + payload


def fuzz_files(rng):
    """Load a damaged model file: a sentence, or a model that predicts or refuses; never a crash."""
    head, members, model, X, y = pick(rng, pool())
    content, damage = damaged(rng, head, dict(members))
    path = Path(FOLDER.name) / "damaged.cons"
    path.write_bytes(content)

    describe(lambda: f"load of {shown(model)[:200]} after {damage}", path)
    loaded, sentence = attempt(lambda: cs.load(path))
    if sentence:
        known = any(word in sentence for word in ("damaged", "refused", "is not a model file", "has file format"))
        assert known, f"the sentence does not say that the file is damaged: {sentence!r}"
        raise Refused(sentence.replace(str(path), "''"))
    use(loaded, model, X, y)


SHOWN = {}  # by address: what is saved stays in the pool, and Views have no hash


def shown(model):
    """Return the description of a model, which takes longer than to load it."""
    if id(model) not in SHOWN:
        SHOWN[id(model)] = show(model)
    return SHOWN[id(model)]


def use(loaded, model, X, y):
    """Do with a loaded model what a user would do next: it works, or raises ValueError or TypeError.

    The arrays of a wrapped estimator belong to another library, which may raise what it likes where they are damaged.
    """
    acts = {"repr": lambda: repr(loaded)}
    if isinstance(loaded, Views):
        acts |= {"rows": lambda: loaded[[-1]], "concat": lambda: Views.concat([loaded] * 2), "len": lambda: len(loaded)}
    elif X is not None and type(loaded) is type(model) and hasattr(loaded, "transform"):
        acts |= {"transform": lambda: loaded.transform(X)}
    elif X is not None and type(loaded) is type(model):
        acts |= {"predict": lambda: loaded.predict(X), "two rows": lambda: loaded.predict(X[[0, 3]])}
        acts |= {"certificate": loaded.certificate}
        if hasattr(loaded, "learn_one") and "g" not in X.names:
            acts |= {"partial_fit": lambda: loaded.partial_fit(X, y), "predict again": lambda: loaded.predict(X)}
    for name, act in acts.items():
        attempt(act, doing=f"in {name}", foreign=isinstance(model, FUSIONS), any_text=True)


def damaged(rng, head, members):
    """Return the bytes of a damaged file, and what was done to it."""
    style = pick(rng, ["bytes", "header", "schema", "schema", "schema", "arrays", "arrays", "arrays", "members"])
    if style == "bytes":
        content = bytearray(model_bytes(head, members.items()))
        place = int(rng.integers(len(content)))
        if chance(rng, 0.5):
            return bytes(content[:place]), f"cut at {place}"
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            content[at] ^= int(rng.integers(1, 256))
        return bytes(content), "flipped bytes"
    if style == "header":
        key = pick(rng, ["format", "version", "sha256"])
        value = pick(rng, [None, 7, -1, "x", [], {}, 1e400, "9" * 3000])
        return model_bytes({**head, key: value}, members.items(), digest=key != "sha256"), f"header {key}={value!r:.20}"
    note = {"schema": damage_schema, "arrays": damage_array, "members": damage_members}[style](rng, members)
    doubled = [*members.items(), ("schema.json", b"{}")] if style == "members" and chance(rng, 0.1) else members.items()
    return model_bytes(head, doubled, compress=chance(rng, 0.1)), note


def nodes_of(tree, path=""):
    """Yield every dict inside a schema with its place, the outer ones first."""
    if isinstance(tree, dict):
        yield tree, path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from nodes_of(value, path if key == "content" else f"{path}.{key}")


def damage_schema(rng, members):
    """Change a value, a type, a list or a name in the schema."""
    schema = json.loads(members["schema.json"])
    places = list(nodes_of(schema))
    nodes = [node for node, _ in places]
    style = pick(rng, ["value", "value", "value", "value", "class", "drop", "swap", "list", "file"])
    if style == "value":
        node, path = pick(rng, [place for place in places if place[0].get("__loader__") == "JsonNode"])
        before = node["content"]
        node["content"] = pick(rng, ["-1", "0", "1", "7", "1000000", "1e308", "NaN", "null", '"x"', "true", "[]", "{}"])
        note = f"{path} {before} -> {node['content']}"
    elif style == "class":
        node, other = pick(rng, nodes), pick(rng, nodes)
        note = f"class {node.get('__class__')} -> {other.get('__class__')}"
        node.update({key: other[key] for key in ("__class__", "__module__", "__loader__") if key in other})
    elif style == "drop":
        node = pick(rng, [node for node in nodes if node])
        key = pick(rng, list(node))
        del node[key]
        note = f"dropped {key!r}"
    elif style == "swap":
        one, two = (pick(rng, nodes) for _ in range(2))
        held = json.loads(json.dumps(two))
        one.clear()
        one.update(held)
        note = f"put {held.get('__class__')} in another place"
    elif style == "list":
        lists = [node for node in nodes if isinstance(node.get("content"), list)]
        node = pick(rng, lists) if lists else schema
        content = node["content"]
        node["content"] = pick(rng, [[], content[:-1], content[::-1], content * 2]) if lists else []
        note = f"list of {len(content)} -> {len(node['content'])}"
    else:
        files = [node for node in nodes if "file" in node]
        node = pick(rng, files) if files else schema
        node["file"] = pick(rng, [*(n["file"] for n in files), "schema.json", "../x.npy", "none.npy"])
        note = f"file -> {node['file']}"
    members["schema.json"] = json.dumps(schema).encode()
    return f"schema: {note}"


def damage_array(rng, members):
    """Put another array in the place of one: other shape, dtype or values."""
    names = [name for name in members if name.endswith(".npy")]
    if not names:
        return damage_schema(rng, members)
    name = pick(rng, names)
    array = np.load(io.BytesIO(members[name]))
    changes = {
        "short": lambda: array[: len(array) // 2] if array.ndim else array,
        "long": lambda: np.concatenate([array, array]) if array.ndim else array,
        "dtype": lambda: array.astype(pick(rng, [np.int8, np.float32, np.complex128, "U3", bool, ">f8", ">i4"])),
        "shape": lambda: pick(rng, [array.ravel(), array[None], array[..., None], array.T]),
        "empty": lambda: np.zeros((0,) * array.ndim, dtype=array.dtype),
        "objects": lambda: np.array(["x", 1.0, None], dtype=object),
        "scalar": lambda: np.asarray(array.ravel()[0] if array.size else 0),
    }
    style = pick(rng, [*changes, "value", "value", "value"])
    changed = np.array(array) if style == "value" else changes[style]()
    if style == "value" and array.size and array.dtype.kind in "iuf":
        changed.flat[rng.integers(array.size)] = pick(rng, [-1, 1, 127, 10**6, -(10**6)])
        if array.dtype.kind == "f" and chance(rng, 0.5):
            changed.flat[rng.integers(array.size)] = pick(rng, [np.nan, np.inf, 1e308, 1e-320])
    target = io.BytesIO()
    np.save(target, changed)
    members[name] = target.getvalue()
    if chance(rng, 0.05):
        members[name] = members[name].replace(b"'shape': (", b"'shape': (99999999, ")
    place = [path for node, path in nodes_of(json.loads(members["schema.json"])) if node.get("file") == name]
    return f"array {name} ({place}): {style}, {show(array)} -> {show(changed)}"


def damage_members(rng, members):
    """Delete, cut, rename or add members of the archive."""
    name = pick(rng, list(members))
    content = members.pop(name)
    changes = {"delete": {}, "cut": {name: content[: rng.integers(len(content))]}, "rename": {name + "x": content}}
    changes |= {"zeros": {name: bytes(int(rng.integers(0, 300)))}, "swap": {name: pick(rng, [*members.values(), b""])}}
    style = pick(rng, list(changes))
    members.update(changes[style])
    return f"member {name}: {style}"


# -- checkpoints
@functools.cache
def states():
    """Return checkpoints as (tree, bytes of the arrays, content): streams, plain data, sparse matrices and Views."""
    n = 6
    rng = np.random.default_rng(5)
    X = Views({"a": rng.normal(size=(n, 2)), "b": sp.csr_array(np.round(rng.normal(size=(n, 3))))})
    S, strings = Views(s=["ab", "b", "a", "", "ba", "c"]), {"s": Spectrum(1)}
    streams = [
        (cs.OnlinePerceptron(average=True), X), (cs.KernelPerceptron(RBF(0.5), budget=3), X),
        (cs.Projectron(RBF(0.5)), X), (cs.PassiveAggressive(), X), (cs.PassiveAggressiveRegressor(RBF(0.5)), X),
        (cs.MatrixPerceptron(unequal="pad"), X), (cs.OrthogonalPerceptron(), X), (cs.MultiCueClassifier(RBF(0.5)), X),
        (cs.RankingPerceptron(), X), (cs.KernelPerceptron(kernel=strings), S),
    ]  # fmt: skip
    contents = [({"numbers": [1, 2.5, None, True, "x"], "set": {1, 2}, "pair": (1,)}, None, None)]
    contents += [({"sparse": sp.csr_array(np.eye(3)), "names": np.array(["a", None], dtype=object)}, None, None)]
    for i, (model, data) in enumerate(streams):
        y = rng.normal(size=n) if not is_classifier(model) else np.arange(n) % (2 + i % 2)
        contents.append(
            (model.partial_fit(data, y, **({"classes": np.unique(y)} if is_classifier(model) else {})), data, y)
        )
    saved = []
    for content, data, y in contents:
        path = Path(FOLDER.name) / "whole.checkpoint"
        cs.io.write_checkpoint(content if data is None else {"model": content, "position": n}, path)
        magic, head, tree, arrays = path.read_bytes().split(b"\n", 3)
        assert magic == b"consilience checkpoint", "not written as a checkpoint"
        saved.append((json.loads(head), tree, arrays, content, data, y))
    return saved


def fuzz_checkpoints(rng):
    """Read a damaged checkpoint: a sentence, or a content that can be used; never a crash."""
    head, tree, arrays, model, X, y = pick(rng, states())
    style = pick(rng, ["file", "tree", "tree", "tree", "arrays", "arrays", "header"])
    if style == "tree":
        tree = damaged_tree(rng, tree)
    elif style == "arrays":
        arrays = damaged_bytes(rng, arrays)
    payload = tree + b"\n" + arrays
    head = {**head, "sha256": hashlib.sha256(payload).hexdigest()}
    if style == "header":
        head[pick(rng, list(head))] = pick(rng, [None, 7, -1, "x", [], {}, 1e400])
    content = b"consilience checkpoint\n" + json.dumps(head).encode() + b"\n" + payload
    if style == "file":
        content = damaged_bytes(rng, content)
    path = Path(FOLDER.name) / "damaged.checkpoint"
    path.write_bytes(content)
    describe(lambda: f"read_checkpoint of {shown_state(model)} after damage of {style}: {tree[:2000]!r}", path)
    loaded, sentence = attempt(lambda: cs.io.read_checkpoint(path))
    if sentence:
        known = any(word in sentence for word in ("damaged", "refused", "is not a model file", "has file format"))
        assert known, f"the sentence does not say that the file is damaged: {sentence!r}"
        raise Refused(sentence.replace(str(path), "''"))
    if X is None or not isinstance(loaded, dict) or type(loaded.get("model")) is not type(model):
        attempt(lambda: repr(loaded), any_text=True)
        return
    own = loaded["model"]
    acts = {"predict": lambda: own.predict(X), "partial_fit": lambda: own.partial_fit(X, y)}
    acts |= {"predict again": lambda: own.predict(X), "certificate": own.certificate}
    for name, act in acts.items():
        attempt(act, doing=f"in {name}", any_text=True)


def shown_state(model):
    """Return the description of what a checkpoint holds."""
    return shown(model) if hasattr(model, "predict") else repr(model)


def damaged_bytes(rng, content):
    """Return bytes with some changed, cut off, doubled or put to zero."""
    data = bytearray(content)
    place, length = int(rng.integers(len(data) + 1)), int(rng.integers(1, 17))
    style = pick(rng, ["flip", "flip", "cut", "double", "zeros", "ones"])
    if style == "flip":
        for at in rng.integers(len(data), size=rng.integers(1, 4)) if data else ():
            data[at] ^= 1 << int(rng.integers(8))
    elif style == "cut":
        del data[place:]
    elif style == "double":
        data[place:place] = data[place : place + length]
    else:
        data[place : place + length] = (b"\0" if style == "zeros" else b"\xff") * len(data[place : place + length])
    return bytes(data)


def damaged_tree(rng, tree):
    """Return the JSON of a tree with another value, without a part, or with a part in another place."""
    if chance(rng, 0.1):
        return damaged_bytes(rng, tree).replace(b"\n", b" ")
    root = json.loads(tree)
    holders = []

    def visit(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            holders.append((node, key))
            if isinstance(value, (dict, list)):
                visit(value)

    visit(root)
    for _ in range(1 + chance(rng, 0.2)):
        holder, key = pick(rng, holders)
        other, place = pick(rng, holders)
        style = pick(rng, ["value", "value", "value", "move", "drop", "rename", "grow"])
        value = holder[key] if isinstance(holder, dict) and key in holder else None
        if style == "drop" and isinstance(holder, dict):
            holder.pop(key, None)
        elif style == "rename" and isinstance(holder, dict) and key in holder:
            holder[pick(rng, ["list", "again", "object", "array", "scalar", "csr_array", "x"])] = holder.pop(key)
        elif style == "grow" and isinstance(value, list):
            holder[key] = value * 2 if chance(rng, 0.5) else value[:-1]
        elif style == "move" and (isinstance(other, list) or place in other):
            holder[key] = json.loads(json.dumps(other[place]))
        else:
            holder[key] = pick(rng, ODD_NODES)
    return json.dumps(root).encode()


ODD_NODES = [
    -1, 0, 1, 7, 10**6, 10**30, 1e308, None, "x", True, [], {}, "<f8", "<i8", "|b1", "<U9", "|O", "<f2", "<c16",
    {"list": []}, {"again": 0}, {"again": -1}, {"again": 10**6}, {"tuple": [1]}, {"dict": [[{"list": []}, 1]]},
    {"scalar": ["<f8", "x"]}, {"scalar": ["<i8", 2]}, {"object": "Views", "state": {}}, {"object": "os.system"},
    {"array": "<f8", "shape": [2]}, {"array": "<f8", "shape": [-1]}, {"array": "|b1", "shape": [10**12]},
    {"objects": [1], "shape": [3]}, {"csr_array": [1, 2, 3], "shape": [1, 1]}, {"set": [{"list": []}]}, float("nan"),
]  # fmt: skip


def warm_up():
    """Use every model of the pool once."""
    for _, _, model, X, y in pool():
        use(model, model, X, y)


def warm_up_small():
    """Use every model of the checkpoints once."""
    for *_, model, X, y in states():
        if X is not None:
            model.predict(X)
            clone(model).partial_fit(X, y, **({"classes": np.unique(y)} if is_classifier(model) else {})).certificate()
