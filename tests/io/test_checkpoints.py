"""Checkpoints: the same state bit for bit, as small as the state, damaged files and foreign classes refused."""

import hashlib
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

import consilience as cs
from consilience.io import read_checkpoint, write_checkpoint
from consilience.io._stored import walk
from consilience.kernels import RBF

RNG = np.random.default_rng(0)
X = cs.Views(a=RNG.normal(size=(60, 3)), b=np.where(RNG.random((60, 1)) < 0.2, np.nan, RNG.normal(size=(60, 3))))
TEXTS = cs.Views(a=X["a"], t=["red car", "blue boat", "red boat"] * 20)
Y = RNG.integers(0, 3, 60)
MODELS = {
    "linear": (cs.OnlinePerceptron(average=True), X),
    "link": (cs.OnlinePerceptron(3.0), X),
    "voted": (cs.PassiveAggressive(average="voted"), X),
    "orthogonal, prepared": (cs.OrthogonalPerceptron(prepare=["impute", "standardize"]), X),
    "matrix": (cs.MatrixPerceptron(), X),
    "kernel": (cs.KernelPerceptron(RBF(0.3) + 0.1, budget=20), X),
    "projectron": (cs.Projectron(RBF(0.3)), X),
    "vector": (cs.VectorPerceptron(RBF(0.3)), X),
    "cues": (cs.MultiCueClassifier(RBF(0.3)), X),
    "ranking": (cs.RankingPerceptron(), X),
    "text": (cs.PassiveAggressive(prepare={"a": cs.RandomFeatures("rbf", n_components=8), "t": "tfidf"}), TEXTS),
}
pytestmark = pytest.mark.filterwarnings("ignore:The budget of")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stream.cons"


def size_of(model):
    """Bytes of all arrays of a model, each once."""
    return sum(part.nbytes for part, _ in walk(model) if isinstance(part, np.ndarray))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("labels", [Y, np.array(["x", "y", "z"])[Y]], ids=["numbers", "text"])
def test_a_stream_goes_on_from_a_checkpoint_bit_for_bit(name, labels, path):
    estimator, views = MODELS[name]
    model = clone(estimator).partial_fit(views[:30], labels[:30], classes=np.unique(labels))
    write_checkpoint({"model": model, "position": 30}, path)
    content = read_checkpoint(path)
    assert path.read_bytes().startswith(b"consilience checkpoint\n")
    assert len(path.read_bytes()) <= size_of(model) + 24_000
    assert content["position"] == 30
    other = content["model"]
    for one in (model, other):
        one.partial_fit(views[30:], labels[30:])
    np.testing.assert_array_equal(model.decision_function(views), other.decision_function(views))
    np.testing.assert_array_equal(model.error_curve_, other.error_curve_)
    assert type(cs.load(path)["model"]) is type(model)


PLAIN = {
    "numbers": [1, -(2**70), 0.1, float("inf"), True, None, "text\n\ud800", 1e-320],
    "scalars": [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("a")],
    "containers": {"a": (1, [2, {3, 4}]), 5: frozenset("b"), (1, 2): {}},
    "arrays": [np.arange(6).reshape(2, 3).T, np.zeros((0, 4)), np.array(["ab", "c"]), np.array([True]), np.array(2.5)],
    "objects": np.array(["a", None, 3.5, (1, 2)], dtype=object),
    "sparse": sp.csr_array(np.eye(3)),
}


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tolist() == other.tolist()
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if sp.issparse(one):
        return type(one) is type(other) and (one != other).nnz == 0
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_come_back_as_they_were(name, path):
    write_checkpoint(PLAIN[name], path)
    assert same(PLAIN[name], read_checkpoint(path))


def test_what_occurs_twice_is_one_object_again(path):
    values, kernel = np.arange(3.0), RBF(0.5)
    write_checkpoint({"a": values, "b": [values, kernel], "c": kernel}, path)
    content = read_checkpoint(path)
    assert content["b"][0] is content["a"]
    assert content["b"][1] is content["c"]


def test_estimators_of_other_packages_make_it_a_model_file(path):
    steps = {"a": FunctionTransformer(), "b": "impute"}
    model = cs.PassiveAggressive(prepare=steps).partial_fit(X, Y)
    write_checkpoint({"model": model, "position": 60}, path)
    assert path.read_bytes().startswith(b"consilience model\n")
    np.testing.assert_array_equal(read_checkpoint(path)["model"].predict(X), model.predict(X))
    with pytest.raises(TypeError, match="Not saved"):
        write_checkpoint({"model": cs.OnlinePerceptron(), "function": test_plain_data_come_back_as_they_were}, path)


# -- files that are not what `write_checkpoint` wrote
def rewrite(path, change):
    """Change the tree and the arrays of a checkpoint, with a checksum that fits."""
    magic, head, tree, arrays = path.read_bytes().split(b"\n", 3)
    tree, arrays = change(json.loads(tree), arrays)
    payload = json.dumps(tree).encode() + b"\n" + arrays
    header = {**json.loads(head), "sha256": hashlib.sha256(payload).hexdigest()}
    path.write_bytes(b"\n".join([magic, json.dumps(header).encode(), payload]))


def renamed(name):
    return lambda tree, arrays: (json.loads(json.dumps(tree).replace('"RBF"', f'"{name}"')), arrays)


CRAFTED = {
    "a class that is not listed": renamed("JointKernel"),
    "a function": renamed("load"),
    "nothing of the library": renamed("Popen"),
    "more bytes": lambda tree, arrays: (tree, arrays + b"\0"),
    "fewer bytes": lambda tree, arrays: (tree, arrays[:-1]),
    "another kind of node": lambda tree, arrays: ({"call": ["os.system", "true"]}, arrays),
    "objects as bytes": lambda tree, arrays: ({"array": "|O", "shape": [1]}, arrays),
    "a huge array": lambda tree, arrays: ({"array": "<f8", "shape": [10**12]}, arrays),
    "a negative array": lambda tree, arrays: ({"array": "<f8", "shape": [-1]}, arrays),
    "an object that is not there": lambda tree, arrays: ({"again": 9}, arrays),
    "a bare list": lambda tree, arrays: ([1], arrays),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_files_are_refused(name, path):
    write_checkpoint({"kernel": RBF(0.5), "values": np.arange(4.0)}, path)
    rewrite(path, lambda tree, arrays: (tree, arrays))
    assert read_checkpoint(path)["kernel"].gamma == 0.5
    rewrite(path, CRAFTED[name])
    with pytest.raises(ValueError, match=re.escape(f"'{path}' is damaged: ")):
        read_checkpoint(path)


def test_states_are_validated(path):
    model = cs.OnlinePerceptron().partial_fit(X, Y)
    model._machine.V = model._machine.V[:-1]
    write_checkpoint({"model": model}, path)
    for read in (read_checkpoint, cs.load):
        with pytest.raises(ValueError, match=r"is damaged: .* Save the model again"):
            read(path)


@pytest.mark.parametrize("value", [None, 1, "x"])
def test_whether_all_classes_are_known_is_validated(value, path):
    model = cs.Projectron(RBF(0.5)).partial_fit(X, Y)
    model._announced = value
    write_checkpoint({"model": model}, path)
    with pytest.raises(ValueError, match="is damaged: _announced"):
        read_checkpoint(path)
    del model._announced
    write_checkpoint({"model": model}, path)
    with pytest.raises(ValueError, match="is damaged: its parts do not fit together"):
        read_checkpoint(path)


def without(*names):
    """Return a change that takes an attribute from a model, or from a part of it."""

    def change(model):
        for name in names[:-1]:
            model = getattr(model, name)
        del model.__dict__[names[-1]]

    return change


def with_value(name, value):
    def change(model):
        getattr(model._calibration, name).flat[: np.size(value)] = value

    return change


INCOMPLETE = {
    "kernels": (cs.PassiveAggressive(), without("kernels_"), "kernels_"),
    "views": (cs.KernelPerceptron(RBF(0.5)), without("_known"), "_known"),
    "bounds": (cs.KernelPerceptron(RBF(0.5)), without("_off_bounds"), "its parts do not fit together"),
    "widths": (cs.MatrixPerceptron(unequal="pad"), without("_width"), "its parts do not fit together"),
    "kernel of all views": (cs.KernelPerceptron(RBF(0.5)), without("_machine", "grams", "combine"), "Grams has no"),
    "weight of squares": (cs.OnlinePerceptron(), with_value("squares", [1.0, 0.0]), "squares of the scores"),
    "curvature": (cs.OnlinePerceptron(), with_value("curvature", [1.0, 2.0, 1.0]), "curvature of the probabilities"),
    "negative curvature": (cs.OnlinePerceptron(), with_value("curvature", -1.0), "curvature of the probabilities"),
    "loss": (cs.PassiveAggressiveRegressor(), lambda model: model.set_params(loss=1), ""),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_incomplete_states_are_refused(name, path):
    model, change, text = INCOMPLETE[name]
    model = clone(model).partial_fit(X, Y > 0)
    write_checkpoint({"model": model}, path)
    read_checkpoint(path)["model"].partial_fit(X, Y > 0)
    change(model)
    write_checkpoint({"model": model}, path)
    with pytest.raises(ValueError, match=f"is damaged: {text}"):
        read_checkpoint(path)


STEPS = {
    "a step without its sample": lambda machine: machine.step_samples.pop(),
    "a step at a sample that never came": lambda machine: machine.step_samples.__setitem__(-1, 61),
    "steps out of order": lambda machine: machine.step_samples.reverse(),
    "a pair that is not kept": lambda machine: machine.steps.__setitem__(0, (0, len(machine.coefs))),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_a_ranking_that_cannot_be_replayed_are_refused(name, path):
    model = cs.RankingPerceptron(joint_kernel=(RBF(0.3), None), average="voted").partial_fit(X, Y)
    write_checkpoint({"model": model}, path)
    np.testing.assert_array_equal(read_checkpoint(path)["model"].predict(X), model.predict(X))
    STEPS[name](model._machine)
    write_checkpoint({"model": model}, path)
    with pytest.raises(ValueError, match="is damaged: arrays of a ranking"):
        read_checkpoint(path)


@pytest.mark.parametrize("part", ["header", "tree", "array"])
def test_damaged_files_are_refused(part, path):
    write_checkpoint({"model": cs.OnlinePerceptron().partial_fit(X, Y)}, path)
    content = bytearray(path.read_bytes())
    at = {"header": 30, "tree": content.index(b"OnlinePerceptron"), "array": len(content) - 9}[part]
    content[at] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="is damaged"):
        read_checkpoint(path)
    path.write_bytes(bytes(content[: len(content) // 2]))
    with pytest.raises(ValueError, match="is damaged"):
        read_checkpoint(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not a model file of consilience"):
        read_checkpoint(path)


def test_a_failed_write_leaves_the_file_of_before(path, monkeypatch):
    write_checkpoint({"position": 1}, path)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="cannot be written: No space left"):
        write_checkpoint({"position": 2}, path)
    assert read_checkpoint(path) == {"position": 1}
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_types_of_numbers_that_differ_between_machines_are_foreign():
    from consilience.io.checkpoints import _Foreign, _number_type

    for text in ("<f8", "float32", "int64", "uint8", "bool", "<U3", "float16"):
        assert _number_type(text) == np.dtype(text)
    for text in ("longdouble", "complex128", "object", "datetime64[s]", "V3", "S2"):
        with pytest.raises(_Foreign):
            _number_type(text)


def test_counts_of_streamed_transformers_are_validated():
    from consilience.io._states import BadState, check_state

    preparation = cs.PerView("standardize").partial_fit(X)
    check_state(preparation)
    for seen in (-1, 60.0, True, None):
        preparation.n_samples_seen_ = seen
        with pytest.raises(BadState, match="n_samples_seen_"):
            check_state(preparation)
    preparation.n_samples_seen_, preparation.transformers_ = 60, list(preparation.transformers_)
    with pytest.raises(BadState, match="n_samples_seen_"):
        check_state(preparation)
