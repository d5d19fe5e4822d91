"""Model files: the same model back, no code run, damage and strangers refused, writes whole or not at all."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import sys
import tracemalloc
import types
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import skops
import skops.io
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import cases
import consilience as cs
from consilience import LateFusion, Nystroem, PerView, RandomFeatures, Views, load, save
from consilience.io import _class_names
from consilience.io._class_names import class_called, schema_nodes
from consilience.io._states import check_state
from consilience.kernels import RBF, FromCallable, Linear, Precomputed, Spectrum, SubsetTree, center
from consilience.kernels.joint import JointKernel
from tiny_learners import TinyRidge

A = cases.histograms()
V = Views(a=A, s=sp.csr_array(A), t=["x", None, "z"] * 10, g=A @ A.T, precomputed="g")


DAMAGED = r"is damaged: .* Save the model again\."


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cons"


def refused(path, message=DAMAGED, **options):
    with pytest.raises(ValueError, match=message):
        load(path, **options)


def split(path):
    _, head, payload = path.read_bytes().split(b"\n", 2)
    return json.loads(head), payload


def rewrite(path, head, payload):
    """Replace the payload of a file, behind a right checksum."""
    head = {**head, "sha256": hashlib.sha256(payload).hexdigest()}
    path.write_bytes(b"consilience model\n" + json.dumps(head).encode() + b"\n" + payload)


def members_of(path):
    with zipfile.ZipFile(io.BytesIO(split(path)[1])) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


SAVED = {
    "views": V,
    "rows of a Gram": V[[3, 1, 4]],
    "late": LateFusion(LogisticRegression()).fit(Views(a=A), np.arange(30) % 2),
    "nystroem": Nystroem(kernel={"t": Spectrum(1), "g": Precomputed()}, n_components=4).fit(V),
    "fourier": RandomFeatures(random_state=0).fit(Views(a=A)),
    "old sparse matrices": Views(s=sp.csr_matrix(A)),
    "per view": PerView({"a": StandardScaler()}).fit(V),
}


@pytest.mark.parametrize("name", SAVED)
def test_the_same_comes_back(name, path):
    model = SAVED[name]
    save(model, path)
    again = load(path)
    if isinstance(model, Views):
        assert again == model
    elif hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict_proba(A), model.predict_proba(A))
        assert again.certificate() == model.certificate()
    else:
        data = Views(a=A) if name == "fourier" else V
        assert again.transform(data) == model.transform(data)


@pytest.mark.parametrize(
    "name", [name for name in [*cases.NUMERIC, *cases.COMPOSED] if name not in ("callable", "f k f")]
)
def test_kernels_come_back(name, path):
    kernel = {**cases.NUMERIC, **cases.COMPOSED}[name].resolved(A)
    save(kernel, path)
    again = load(path)
    assert repr(again) == repr(kernel)
    np.testing.assert_allclose(again(A), kernel(A), rtol=1e-14)


def test_structured_kernels_come_back(path):
    for kernel in (Spectrum(2), SubsetTree(), center(Spectrum(1)).resolved(["ab", "bc"])):
        save(kernel, path)
        assert repr(load(path)) == repr(kernel)


def test_functions_are_refused_before_anything_is_written(path):
    for kernel in (FromCallable(cases.linear_by_hand), Linear().mapped(cases.linear_by_hand)):
        with pytest.raises(TypeError, match=r"Not saved: .*linear_by_hand, which `load` would refuse"):
            save(kernel, path)
    assert not path.exists()


def test_other_types_must_be_named_on_both_sides(path):
    model = TinyRidge().fit(Views(a=A), A[:, 0])
    with pytest.raises(TypeError, match=r"tiny_learners.TinyRidge, which `load` would refuse"):
        save(model, path)
    save(model, path, trusted=["tiny_learners.TinyRidge"])
    refused(path, "is refused: it holds tiny_learners.TinyRidge")
    np.testing.assert_array_equal(load(path, trusted=["tiny_learners.TinyRidge"]).predict(A), model.predict(A))


class Bomb:
    exploded = False

    def __reduce__(self):
        return (os.system, ("exit 1",))

    def __setstate__(self, state):
        Bomb.exploded = True


def test_no_code_in_a_file_runs(path, tmp_path):
    pickled = tmp_path / "evil.pkl"
    pickled.write_bytes(pickle.dumps(Bomb()))
    refused(pickled, "is not a model file of consilience")
    save(RBF(0.5), path)
    head, _ = split(path)
    evil = skops.io.dumps({"kernel": RBF(0.5), "bomb": type("Bomb", (Bomb,), {"__reduce__": object.__reduce__})})
    rewrite(path, head, evil)
    refused(path, "is refused")
    assert not Bomb.exploded


def test_every_flipped_byte_is_seen(path):
    save(RBF(0.5), path)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if b'"version": "' in whole[:place] and b'", "sha256' in whole[place:]:
            continue  # the version of the library, which only messages use
        refused(path, re.escape(str(path)))


@pytest.mark.parametrize("cut", [0, 5, 30, 200, -1])
def test_a_truncated_file_is_refused(path, cut):
    save(RBF(0.5), path)
    path.write_bytes(path.read_bytes()[:cut])
    refused(path, "is not a model file|is damaged")


def test_another_format_is_refused_by_name(path):
    save(RBF(0.5), path)
    head, payload = split(path)
    rewrite(path, {**head, "format": 99, "version": "7.0"}, payload)
    refused(path, r"has file format 99, written by version 7\.0")
    for broken in ('{"format": Infinity}', '{"format": "x"}', "[" * 3000, "{}" + " " * 5000):
        path.write_bytes(b"consilience model\n" + broken.encode() + b"\n" + payload)
        refused(path, "its header cannot be read")
    for nothing in (b"", b"no archive", b"PK\x05\x06" + 18 * b"\0"):
        rewrite(path, head, nothing)
        refused(path, "it does not hold a model")


def test_without_skops_there_is_a_sentence(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'consilience\[io\]'"):
        save(RBF(0.5), path)


def test_a_missing_file(path):
    with pytest.raises(FileNotFoundError):
        load(path)


# -- names of classes
def classes_in(path):
    """The classes that a file names, by what it calls their modules."""
    nodes = schema_nodes(json.loads(members_of(path)["schema.json"]))
    return {(node["__module__"], node["__class__"]) for node in nodes if "__class__" in node}


def test_files_name_classes_of_the_library_without_modules(path):
    save(machine_of("kernel, voted"), path)
    named = {name for module, name in classes_in(path) if module == "consilience"}
    assert {"KernelPerceptron", "KernelMachine", "Support", "Grams", "Events", "RBF", "Views"} <= named
    assert not [module for module, _ in classes_in(path) if module.startswith("consilience.")]


def test_classes_that_the_table_does_not_have_are_refused_by_their_full_names(path, monkeypatch):
    with pytest.raises(
        TypeError, match=r"RemoveBatch holds consilience\.kernels\.joint\.JointKernel, which `load` would"
    ):
        save(cs.RemoveBatch(view=JointKernel.__new__(JointKernel)), path)
    other = type("RBF", (), {"__module__": "consilience.elsewhere"})  # called as a class of the table
    elsewhere = types.ModuleType("consilience.elsewhere")
    elsewhere.RBF = other
    monkeypatch.setitem(sys.modules, elsewhere.__name__, elsewhere)
    with pytest.raises(TypeError, match=r"RemoveBatch holds consilience\.elsewhere\.RBF, which `load` would"):
        save(cs.RemoveBatch(view=other()), path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["RBF", "KernelPerceptron", "KernelMachine", "Views"])
def test_a_class_that_was_moved_to_another_module_is_still_loaded(name, path, monkeypatch):
    model = machine_of("kernel")
    save(model, path)
    cls = class_called(name)
    elsewhere = types.ModuleType("consilience.elsewhere")
    setattr(elsewhere, name, cls)
    monkeypatch.setitem(sys.modules, elsewhere.__name__, elsewhere)
    monkeypatch.setattr(cls, "__module__", elsewhere.__name__)
    again = load(path)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    save(again, path)
    assert np.array_equal(load(path).decision_function(X), model.decision_function(X))


def renamed(path, change):
    """Rewrite a file so that its schema names other classes."""
    members = members_of(path)
    tree = json.loads(members["schema.json"])
    for part in schema_nodes(tree):
        if part.get("__module__") == "consilience":
            change(part)
    rewrite(path, split(path)[0], packed({**members, "schema.json": json.dumps(tree).encode()}))


UNLISTED = {
    "a class by its module": ("consilience.kernels.scalar", "RBF"),
    "a class that is not in the table": ("consilience", "JointKernel"),
    "a class by the module of another": ("consilience.kernels.joint", "JointKernel"),
    "a function": ("consilience", "load"),
    "a module": ("consilience", "kernels"),
    "a class of another room": ("consilience", "Leaderboard"),
    "nothing": ("consilience", "__import__"),
}


@pytest.mark.parametrize("name", UNLISTED)
def test_classes_that_are_not_listed_are_refused(name, path):
    module, called = UNLISTED[name]
    save(RBF(0.5), path)
    renamed(path, lambda part: part.update(__module__=module, __class__=called))
    refused(path, re.escape(f"is refused: it holds {module}.{called}, which are not"))


def test_every_name_of_the_table_is_a_class_with_that_name():
    names = [name for names in _class_names._PARTS.values() for name in names]
    assert len(set(names)) == len(names)
    for name in names:
        cls = class_called(name)
        assert cls.__name__ == name
        assert name not in cs.__all__, f"{name} is public, and need not be listed"


# -- files that someone made on purpose
X = Views(a=A[:, :2] + 0.1, b=A[:, 2:] + 0.1)
TWO, THREE = np.arange(30) % 2, np.arange(30) % 3
NUMBERS = np.random.default_rng(1).normal(size=(30, 2))
MACHINES = {
    "linear": (cs.OnlinePerceptron(), THREE),
    "linear, average": (cs.OnlinePerceptron(average=True), TWO),
    "linear, voted": (cs.OnlinePerceptron(average="voted"), THREE),
    "linear, a weight per view": (cs.OrthogonalPerceptron(average=True), TWO),
    "linear, a weight per pair": (cs.MatrixPerceptron(average=True), THREE),
    "link": (cs.OnlinePerceptron(3), THREE),
    "link, average": (cs.OnlinePerceptron(3, average=True), TWO),
    "link, voted": (cs.OnlinePerceptron(3, average="voted"), THREE),
    "kernel": (cs.KernelPerceptron(RBF(0.5)), TWO),
    "kernel, average": (cs.KernelPerceptron(RBF(0.5), average=True), THREE),
    "kernel, voted": (cs.KernelPerceptron(RBF(0.5), average="voted"), THREE),
    "kernel, budget": (cs.KernelPerceptron(RBF(0.5), budget=9), TWO),
    "kernel, budget and factors": (cs.OrthogonalPerceptron(RBF(0.5), budget=9), THREE),
    "kernel, passive-aggressive": (cs.PassiveAggressive(RBF(0.5)), THREE),
    "kernel, a factor per view": (cs.OrthogonalPerceptron(RBF(0.5), average=True), TWO),
    "kernel, a factor per pair": (cs.MatrixPerceptron(RBF(0.5), average=True), THREE),
    "kernel, outputs together": (cs.KernelPerceptron(RBF(0.5), output_kernel=np.eye(3) + 0.1), THREE),
    "projectron": (cs.Projectron(RBF(0.5)), TWO),
    "projectron, budget": (cs.Projectron(RBF(0.5), threshold=0.01, budget=4), TWO),
    "projectron, average": (cs.Projectron(RBF(0.5), average=True), THREE),
    "cues": (cs.MultiCueClassifier(RBF(0.5)), TWO),
    "cues, three": (cs.MultiCueClassifier(RBF(0.5)), THREE),
    "vector": (cs.VectorPerceptron(), THREE),
    "vector, kernel": (cs.VectorPerceptron(RBF(0.5)), TWO),
    "vector, coefficients": (cs.VectorPerceptron(RBF(0.5), variant="coefficients", eta0=0.01), THREE),
    "numbers": (cs.PassiveAggressiveRegressor(), NUMBERS),
    "numbers, a factor per view": (cs.PassiveAggressiveRegressor(p=2), NUMBERS[:, 0]),
    "numbers, kernel": (cs.PassiveAggressiveRegressor(RBF(0.5), budget=9), NUMBERS[:, 0]),
    "numbers, projected": (cs.PassiveAggressiveRegressor(RBF(0.5), threshold=0.1), NUMBERS),
    "labels": (cs.PassiveAggressive(average=True), NUMBERS > 0),
    "labels, lists": (cs.OrthogonalPerceptron(RBF(0.5)), [["a", "b"][:k] for k in THREE]),
}
FREE = ("classes_", "support_", "ids", "output_kernel")  # names, parameters: nothing is found by them


def machine_of(name):
    learner, y = MACHINES[name]
    return clone(learner).set_params(shuffle=False, max_iter=2).fit(X, y)


def parts(value, path=""):
    """A learner and all objects of the library in it, each once."""
    found, inside = [(path, value)], vars(value)
    for key, part in inside.items():
        for name, held in part.items() if isinstance(part, dict) else [(key, part)]:
            if type(held).__module__.startswith("consilience.online"):
                found += parts(held, f"{path}.{name}")
    return found


def crafted(array):
    """What an array of a file can be instead: of another length or type, or pointing elsewhere."""
    if len(array):
        yield "shorter", array[:-1].copy()
        yield "wider", np.stack([array, array], axis=-1)
    yield "longer", np.concatenate([array, array[-1:] if len(array) else np.ones((1, *array.shape[1:]), array.dtype)])
    yield "of another type", array.astype({"f": np.int64, "i": np.float64, "b": np.float64}[array.dtype.kind])
    if array.dtype.kind == "i" and array.size:
        for title, value in (("out of range", 10**12), ("just out of range", 10**6), ("negative", -1)):
            changed = array.copy()
            changed[-1] = value
            yield title, changed
    if array.dtype.kind == "f" and array.size:
        yield "not a number", np.full_like(array, np.nan)
        yield "of long double", array.astype(np.longdouble)


@pytest.mark.parametrize("name", MACHINES)
def test_states_that_no_fit_leaves_are_refused(name, path):
    from consilience.io._states import BadState, check_state

    save(machine_of(name), path)
    model, tried, accepted = load(path), 0, []
    for where, owner in parts(model):
        for key, array in list(vars(owner).items()):
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "fib" or key in FREE:
                continue
            for title, changed in crafted(array):
                setattr(owner, key, changed)
                tried += 1
                try:
                    check_state(model)
                    accepted.append(f"{where}.{key} {title}")
                except BadState:
                    pass
                if tried == 1:
                    save(model, path)
                    refused(path)
            setattr(owner, key, array)
    check_state(model)
    assert tried > 5
    assert not accepted


MARGIN = ("dual_coef_", "_support_labels", "support_", "_in_fit", "_fit_weights", "intercept_", "_score_map")


@pytest.mark.parametrize("name", ["two classes", "three classes", "numbers", "landmarks"])
def test_states_of_maximum_margin_estimators_that_no_fit_leaves_are_refused(name):
    from consilience.io._states import BadState, check_state

    y = {"two classes": TWO, "three classes": THREE, "numbers": NUMBERS}.get(name, THREE)
    if name == "landmarks":
        model = cs.MaxMarginClassifier(RBF(0.5), combine="product", n_components=7, random_state=0).fit(X, y)
        assert len(model._in_fit) == len(model._landmark_root) == 7
    else:
        model = (cs.MaxMarginRegressor if name == "numbers" else cs.MaxMarginClassifier)(RBF(0.5)).fit(X, y)
    check_state(model)
    tried, accepted = 0, []
    for key in MARGIN:
        array = vars(model).get(key)
        for title, changed in crafted(array) if isinstance(array, np.ndarray) else ():
            setattr(model, key, changed)
            tried += 1
            with contextlib.suppress(BadState):
                check_state(model)
                accepted.append(f"{key} {title}")
        setattr(model, key, array) if key in vars(model) else None
    assert tried > 20
    assert not accepted


def shifted(owner, name, by):
    setattr(owner, name, getattr(owner, name) + by)


def long_offsets(machine):
    machine.columns.offsets = dict.fromkeys(machine.columns.offsets, 10**9)


def far_columns(machine):
    for change in machine.changes:
        change.indices = np.full(len(change.indices), 2**30, dtype=np.int32)


def rename_classes(cue):
    cue.classes_ = cue.classes_ + 5
    cue._codes = {label + 5: code for label, code in cue._codes.items()}


def other_widths(machine):
    machine.columns.widths = {name: width + 10**6 for name, width in machine.columns.widths.items()}


EVIL = {
    "votes of samples elsewhere": ("kernel, voted", lambda model: shifted(model._machine.events, "slots", 10**12)),
    "votes for classes elsewhere": ("kernel, voted", lambda model: shifted(model._machine.events, "outputs", 10**10)),
    "columns elsewhere": ("linear", lambda model: long_offsets(model._machine)),
    "columns of a norm elsewhere": ("link", lambda model: long_offsets(model._machine)),
    "more columns than there are": ("linear", lambda model: other_widths(model._machine)),
    "changes that are not sparse": (
        "link, voted",
        lambda model: setattr(model._machine, "changes", [np.zeros((1, 4))]),
    ),
    "sparse changes elsewhere": ("link, voted", lambda model: far_columns(model._machine)),
    "more outputs than there are": ("linear", lambda model: setattr(model._machine, "n_outputs", 10**6)),
    "more outputs of a kernel": ("kernel", lambda model: setattr(model._machine, "n_outputs", 7)),
    "another shape": ("linear, a weight per view", lambda model: setattr(model._machine, "shape", "pairs")),
    "another shape of kernels": ("kernel", lambda model: setattr(model._machine.grams, "shape", "pairs")),
    "no kernels": ("kernel", lambda model: setattr(model._machine.grams, "kernels", {})),
    "no samples": ("kernel", lambda model: setattr(model._machine.support, "parts", [])),
    "another machine": ("linear", lambda model: setattr(model, "_machine", machine_of("kernel")._machine)),
    "no machine": ("kernel", lambda model: setattr(model, "_machine", None)),
    "another average": ("linear, average", lambda model: setattr(model, "average", False)),
    "a budget below zero": ("kernel, budget", lambda model: setattr(model._machine, "budget", -5)),
    "more classes than outputs": ("kernel", lambda model: setattr(model, "classes_", np.arange(9))),
    "classes out of order": ("linear", lambda model: setattr(model, "classes_", np.array([2, 0, 1]))),
    "a layer of other outputs": ("cues", lambda model: setattr(model._machine, "n_outputs", 5)),
    "classes of one cue": ("cues", lambda model: rename_classes(next(iter(model.estimators_.values())))),
    "classes of samples elsewhere": ("vector, kernel", lambda model: shifted(model._machine, "codes", 10**9)),
    "codes of labels elsewhere": ("linear", lambda model: setattr(model, "_codes", {0: 0, 1: 10**9, 2: 2})),
    "settings that were never checked": ("linear", lambda model: model._began_with.clear()),
    "factors of views in another order": (
        "linear, a weight per view",
        lambda model: setattr(model._machine.factors, "names", model._machine.factors.names[::-1]),
    ),
    "factors of other views": ("linear, a weight per view", lambda model: setattr(model._machine.factors, "names", ())),
}


@pytest.mark.parametrize("name", EVIL)
def test_files_that_would_read_or_write_elsewhere_are_refused(name, path):
    machine, damage = EVIL[name]
    model = machine_of(machine)
    damage(model)
    save(model, path)
    refused(path)


def test_scores_of_one_cue_that_are_taken_for_those_of_another_are_refused(path):
    views = Views(a=A[:, :1], b=A[:, 1:2], c=A[:, 2:])
    model = cs.MultiCueClassifier(RBF(0.5)).partial_fit(views, THREE)
    save(model, path)
    columns = load(path)._machine.columns
    assert columns.widths == {"a": 3, "b": 3, "c": 3}  # a score of each class
    first, second = list(columns.widths)[:2]
    model._machine.columns.widths = {**columns.widths, first: 2, second: 4}
    model._machine.columns.offsets = {**columns.offsets, second: columns.offsets[second] - 1}
    save(model, path)
    refused(path, "widths of the top layer")


def test_views_with_other_names_of_columns_than_columns_are_refused(path):
    for names in (("x",), ("x", "y", "z", "w", "v"), ["x", "y"], ("x", 2)):
        V = Views(a=A[:, :2])
        save(V, path)
        V.feature_names["a"] = names
        save(V, path)
        refused(path)
    V.feature_names["a"] = ("x", "y")
    save(V, path)
    assert load(path).feature_names["a"] == ("x", "y")


def test_views_with_sparse_indices_elsewhere_are_refused(path):
    for name, change in (
        ("indices", lambda old: np.full_like(old, 2**30)),
        ("indices", lambda old: np.full_like(old, -5)),
        ("indices", lambda old: old[::-1].copy()),
        ("indptr", lambda old: np.full_like(old, 2**30)),
        ("indptr", lambda old: old[1:]),
        ("data", lambda old: old[:-5]),
    ):
        V = Views(s=sp.csr_matrix(A))
        setattr(V._blocks["s"], name, change(getattr(V._blocks["s"], name)))
        save(V, path)
        refused(path)
    gram = Views(g=A @ A.T, precomputed="g")[[2, 5]]
    gram._blocks["g"].index = np.array([2, 10**9])
    save(gram, path)
    refused(path)


def test_gram_matrices_whose_samples_are_not_among_those_of_the_fit_are_refused(path):
    model = cs.CoRegularizedRidge(Precomputed()).fit(Views(g=A @ A.T, precomputed="g"), [None, *A[1:, 0]])
    gram = model.X_fit_._blocks["g"]
    assert gram.order.max() == gram.n_order - 1
    save(model, path)
    load(path)
    for place in (-1, gram.n_order):
        gram.order = np.append(gram.order[:-1], place)
        save(model, path)
        refused(path, "is damaged: orders of a Gram matrix")


# -- what unpacks to more than it should
def packed(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            with archive.open(name, "w", force_zip64=True) as member:
                for piece in [content] if isinstance(content, bytes) else content:
                    member.write(piece)
    return buffer.getvalue()


def npy(shape, data=b"", dtype="<f8"):
    """An array of a header that says anything."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue() + data


def node(file, ident=1):
    return {
        "__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy", "file": file,
        "__id__": ident,
    }  # fmt: skip


def schema(*nodes):
    content = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": list(nodes)}
    return json.dumps({**content, "__id__": 0, "protocol": 2, "_skops_version": skops.__version__}).encode()


SPACES = [b" " * 2**24] * 12  # 200 MB
MANY = json.loads(schema(*(node("a.npy", k) for k in range(1, 1001))))
BOMBS = {
    "a schema of spaces": lambda: packed({"schema.json": [*SPACES, schema()]}),
    "a member that is not used": lambda: packed({"schema.json": schema(), "else": SPACES}),
    "an array of zeros": lambda: packed(
        {"schema.json": schema(node("a.npy")), "a.npy": [npy((12 * 2**21,)), *[bytes(2**24)] * 12]}
    ),
    "sparse matrices of zeros": lambda: packed(
        {"schema.json": schema(), "a.npz": packed({"data.npy": [npy((12 * 2**21,)), *[bytes(2**24)] * 12]})}
    ),
    "one array a thousand times": lambda: packed(
        {"schema.json": json.dumps(MANY).encode(), "a.npy": npy((2**17,), bytes(2**20))}
    ),
}
LIES = {
    "an array of a million million numbers": lambda: {"schema.json": schema(node("a.npy")), "a.npy": npy((10**12,))},
    "an array of less than nothing": lambda: {"schema.json": schema(node("a.npy")), "a.npy": npy((-1,), bytes(8))},
    "an array of objects": lambda: {"schema.json": schema(node("a.npy")), "a.npy": npy((1,), bytes(8), "|O")},
    "an array without a header": lambda: {"schema.json": schema(node("a.npy")), "a.npy": b"no header"},
    "an array that is cut": lambda: {"schema.json": schema(node("a.npy")), "a.npy": npy((9,), bytes(64))},
    "an array that is missing": lambda: {"schema.json": schema(node("b.npy"))},
    "a sparse matrix that is none": lambda: {"schema.json": schema(), "a.npz": b"nothing"},
    "a schema that is no JSON": lambda: {"schema.json": b"{"},
    "a schema that is a number": lambda: {"schema.json": b"7"},
    "a schema without a loader": lambda: {"schema.json": b'{"protocol": 2}'},
    "a schema that is deep": lambda: {"schema.json": b'{"content": ' * 50_000 + b"1" + b"}" * 50_000},
    "no schema": lambda: {"a.npy": npy((1,), bytes(8))},
}


def memory_of_refusal(path, payload, message):
    """Return the bytes that are held at most while a file is refused."""
    rewrite(path, {"format": 1, "version": "1.0"}, payload)
    tracemalloc.start()
    refused(path, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(name, path):
    message = r"is refused: its [\d.]+ MB unpack to [\d,]+ MB, which no model does\."
    assert memory_of_refusal(path, BOMBS[name](), message) < 30e6
    assert path.stat().st_size < 2e6


@pytest.mark.parametrize("name", LIES)
def test_damage_behind_a_right_checksum_is_refused(name, path):
    assert memory_of_refusal(path, packed(LIES[name]()), DAMAGED) < 100e6


def test_parts_of_a_real_file_that_are_damaged_behind_a_right_checksum_are_refused(path):
    save(machine_of("kernel"), path)
    members = members_of(path)
    for name, content in members.items():
        for changed in (content[: len(content) // 2], b"", content[::-1], content[:-1]):
            rewrite(path, split(path)[0], packed({**members, name: changed}))
            refused(path, f"{DAMAGED}|is refused")


def test_large_models_of_equal_numbers_are_not_taken_for_bombs(path):
    for model in (Views(a=np.zeros((200_000, 60))), Views(s=sp.csr_matrix(np.ones((2000, 2000))))):
        save(model, path)
        assert load(path) == model


# every estimator comes back, and continues to learn as before
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.LEARNERS)
def test_every_estimator_comes_back(name, path):
    y = THREE if is_classifier(cases.LEARNERS[name]) else X["a"][:, 0] - X["b"][:, 1]
    model = clone(cases.LEARNERS[name]).fit(X, y)
    save(model, path)
    again = load(path)
    assert np.array_equal(again.predict(X), model.predict(X))
    if hasattr(model, "decision_function"):
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate() == model.certificate()
    if hasattr(model, "learn_one"):
        again.partial_fit(X, y[::-1])
        model.partial_fit(X, y[::-1])
        assert np.array_equal(again.predict(X), model.predict(X))
        assert np.array_equal(again._combined(X), model._combined(X))


WITH_KERNELS = list(cases.with_kernels(online=False).values())


@pytest.mark.parametrize("cls", WITH_KERNELS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("change", [np.ravel, np.sum, lambda W: W[None]], ids=["flat", "number", "deeper"])
def test_coefficients_of_another_shape_are_refused(cls, change):
    rng = np.random.default_rng(0)
    X, y = {"a": rng.normal(size=(12, 2)), "b": rng.normal(size=(12, 3))}, np.arange(12) % 2
    model = cls().fit(X, y if is_classifier(cls()) else rng.normal(size=12))
    check_state(model)
    if not hasattr(model, "dual_coef_"):
        pytest.skip("this estimator has other coefficients")
    changed = np.asarray(change(model.dual_coef_))
    if changed.shape == model.dual_coef_.shape:
        changed = np.stack([changed, changed])
    model.dual_coef_ = changed
    with pytest.raises(ValueError):
        check_state(model)


def test_the_sizes_of_a_refused_file_are_in_megabytes(path):
    payload = packed({"schema.json": schema(), "else": SPACES})
    rewrite(path, {"format": 1, "version": "1.0"}, payload)
    refused(path, rf"its {len(payload) / 2**20:.1f} MB unpack to 192 MB, which no model does")
