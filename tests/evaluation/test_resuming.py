"""Comparisons that continue: the file of finished folds, cut anywhere, of other comparisons, or damaged."""

import csv
import datetime
import json
import os
import re
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, ShuffleSplit
from sklearn.naive_bayes import GaussianNB

import consilience as cs
from consilience.cli import main as entry
from consilience.evaluation import _kept_folds, _running
from consilience.kernels import RBF, Linear

rng = np.random.default_rng(0)
N = 40
A, B = rng.normal(size=(N, 3)), rng.normal(size=(N, 2))
PLACES = (A[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(int)
X = cs.Views(a=A, b=B)
HOLES = cs.Views(a=A, b=np.where((np.arange(N) % 4 == 1)[:, None], np.nan, B))
DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 5, 6)]
BOARD = {"cv": 3, "inner_cv": 2, "baselines": False}


class Nearest(ClassifierMixin, BaseEstimator):
    """Predict the class with the nearest mean, whatever the type of the classes."""

    def __init__(self, power=2.0):
        self.power = power

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([np.nan_to_num(np.asarray(X))[y == c].mean(axis=0) for c in self.classes_])
        return self

    def decision_function(self, X):
        far = np.abs(np.nan_to_num(np.asarray(X))[:, None] - self.means_) ** self.power
        far = far.sum(axis=2)
        return far[:, 0] - far[:, 1] if len(self.classes_) == 2 else -far

    def predict(self, X):
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class Failing(RegressorMixin, ClassifierMixin, BaseEstimator):
    """Cannot be fitted."""

    def fit(self, X, y):
        raise ValueError('Too bad: \u00e9, "quotes" and \ud800.\nA second line.')

    def predict(self, X):
        raise NotImplementedError


def labels(kind):
    return np.array(kind)[PLACES] if not isinstance(kind[0], datetime.date) else objects(kind)


def objects(kind):
    found = np.empty(N, dtype=object)
    found[:] = [kind[k] for k in PLACES]
    return found


def share_right(model, X, y):
    return float(np.mean(model.predict(X) == y))


OWN = {"nearest": (Nearest(), {"power": [1.0, 2.0]}), "failing": Failing()}
CASES = {
    "strings": (X, labels(["no", "yes, \u00fc"]), {"estimators": {**OWN, "bayes": GaussianNB()}}),
    "numbers": (X, labels([-1, 7]), {"estimators": OWN, "scoring": ["balanced_accuracy", "neg_log_loss", "accuracy"]}),
    "booleans": (X, labels([False, True]), {"estimators": OWN, "scoring": "f1"}),
    "times": (X, labels([np.datetime64("2020-01-01"), np.datetime64("2021-01-01")]), {"estimators": OWN}),
    "dates": (X, labels(DAYS), {"estimators": OWN, "cv": KFold(3), "inner_cv": KFold(2), "scoring": share_right}),
    "objects": (X, objects(["no", "yes"]), {"estimators": OWN}),
    "missing views": (HOLES, labels(["no", "yes"]), {"estimators": ["b alone", "CoRegularizedRidgeClassifierCV"]}),
    "regression": (X, A[:, 0] ** 2, {"estimators": {"ridge": (Ridge(), {"alpha": np.logspace(-2, 2, 3)}),
                                                    "failing": Failing()}, "scoring": ["r2", "neg_max_error"]}),
    "weights": (X, PLACES, {"estimators": {"ridge": (RidgeClassifier(), {"alpha": [0.1, 10]})},
                            "sample_weight": 1 + np.arange(N) % 3, "class_weight": "balanced"}),
    "groups": (X, PLACES, {"estimators": OWN, "groups": np.arange(N) % 8}),
    "searches of your own": (X, PLACES, {"estimators": {
        "grid": GridSearchCV(cs.CoRegularizedRidgeClassifier(), {"alpha": [0.1, 10]}, cv=2),
        "random": RandomizedSearchCV(cs.CoRegularizedRidgeClassifier(), {
            "alpha": [0.1, 10, np.float32(3)], "view_weights": [None, [1, 2.0], (1, 1)]},
            n_iter=4, cv=2, random_state=0)}}),
    "overlapping tests": (X, PLACES, {"estimators": OWN, "cv": ShuffleSplit(3, random_state=0)}),
    "preparation": (X, PLACES, {"estimators": OWN, "prepare": {"a": "top_k:1"}}),
}  # fmt: skip


def bits(value):
    """Return a value as plain data that is equal only if the value is equal bit for bit."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.ndarray):
        return [bits(part) for part in value.ravel().tolist()]
    if isinstance(value, (list, tuple)):
        return [bits(part) for part in value]
    if isinstance(value, dict):
        return [(key, bits(part)) for key, part in value.items()]
    if isinstance(value, (float, np.floating)):
        return type(value).__name__, float(value).hex()
    return type(value).__name__, value


def content(board):
    """Return all of a leaderboard but its times."""
    rows = []
    for row in board:
        parts = [bits([p.test, p.predictions, p.probabilities, p.decisions]) for p in row.parts]
        rows.append(bits([row.name, row.title, row.kind, row.scores, row.low, row.high, row.predictions, row.measures,
                          row.best_params, row.scored, row.probabilities]) + parts)  # fmt: skip
    differences = [bits(list(vars(each).values())) for each in board.differences()]
    names = [board.failed, board.notes, board.scorings, board.task, [bits(split) for split in board.splits]]
    return rows, differences, names, board.simplest().name


@pytest.fixture
def counted(monkeypatch):
    """Count the folds that are computed."""
    calls, before = [], _running.run_fold
    monkeypatch.setattr(_running, "run_fold", lambda *given: (calls.append(1), before(*given))[1])
    return calls


def cuts(whole):
    """Return places within each line of a file, and its ends."""
    ends = [m.end() for m in re.finditer(b"\n", whole)]
    found = [0]
    for start, end in zip(ends, [*ends[1:], None], strict=True):
        found += [start] if end is None else [start, start + 1, (start + end) // 2, end - 1]
    return found


# -- continuing
@pytest.mark.parametrize("case", CASES)
def test_a_comparison_continues_from_every_line_and_ends_in_the_same_bits(case, tmp_path, counted):
    X, y, options = CASES[case]
    file = tmp_path / "folds.jsonl"
    expected = content(cs.compare(X, y, **BOARD | options))
    assert content(cs.compare(X, y, **BOARD | options, resume=file)) == expected
    whole = file.read_bytes()
    n_folds = whole.count(b"\n") - 1
    assert n_folds == 3 * (len(options["estimators"]) if isinstance(options["estimators"], (dict, list)) else 1)
    places = cuts(whole) if case in ("strings", "regression") else [0, *cuts(whole)[1::9], len(whole)]
    for cut in places:
        file.write_bytes(whole[:cut])
        counted.clear()
        board = cs.compare(X, y, **BOARD | options, resume=file)
        assert content(board) == expected
        assert len(counted) == n_folds - max(0, whole[:cut].count(b"\n") - 1)
        assert file.read_bytes().count(b"\n") == n_folds + 1
    assert os.listdir(tmp_path) == ["folds.jsonl"]


def test_times_are_those_that_were_measured(tmp_path):
    y, options = CASES["strings"][1], CASES["strings"][2]
    boards = [cs.compare(X, y, **BOARD | options, resume=tmp_path / "folds") for _ in range(2)]
    assert [row.fit_time for row in boards[0]] == [row.fit_time for row in boards[1]]


class Awaited:
    """Files to wait for: a list of the module would be a constant of the code that names it."""

    files = []


class Patient(Nearest):
    """Waits until the results of another estimator are in the file."""

    def fit(self, X, y):
        for _ in range(6000):
            if all(file.exists() and b'"estimator": "b"' in file.read_bytes() for file in Awaited.files):
                break
            time.sleep(0.01)
        return super().fit(X, y)


def test_results_are_kept_as_they_come(tmp_path, counted):
    y, options, file = PLACES, {"estimators": {"a": Patient(), "b": Nearest(1.0)}, "cv": 2}, tmp_path / "folds"
    Awaited.files.append(file)
    with joblib.parallel_config(backend="threading"):
        board = cs.compare(X, y, **BOARD | options, n_jobs=4, resume=file)
    Awaited.files.clear()
    expected = content(cs.compare(X, y, **BOARD | options))
    assert content(board) == expected
    lines = file.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[1])["estimator"] == "b"
    counted.clear()
    file.write_bytes(b"".join([lines[0], *lines[:2:-1]]))  # in another order
    assert content(cs.compare(X, y, **BOARD | options, resume=str(file))) == expected
    assert len(counted) == 2


def test_results_of_other_processes_are_kept(tmp_path, counted):
    options, file = {**BOARD, "cv": 2, "estimators": {"ridge": RidgeClassifier()}}, tmp_path / "folds"
    board = cs.compare(X, PLACES, **options, n_jobs=2, resume=file)
    assert content(cs.compare(X, PLACES, **options, resume=file)) == content(board)
    assert counted == []


def test_kernels_in_a_grid_come_back(tmp_path):
    own = {"mine": (cs.CoRegularizedRidgeClassifier(), {"kernel": [Linear(), RBF(0.1)]})}
    boards = [cs.compare(X, PLACES, estimators=own, **BOARD, resume=tmp_path / "folds") for _ in range(2)]
    chosen = [[repr(params) for params in board[0].best_params] for board in boards]
    assert chosen[0] == chosen[1]
    assert "kernel" in chosen[0][0]


class OtherType(Nearest):
    """Predicts classes as objects of NumPy."""

    def predict(self, X):
        return np.array([*super().predict(X), None], dtype=object)[:-1]


KERNELS = RandomizedSearchCV(
    cs.CoRegularizedRidgeClassifier(), {"kernel": [Linear(), RBF(0.1)]}, n_iter=1, cv=2, random_state=0
)


class OfStrings(Nearest):
    """Predicts shorter strings than the classes have room for, and in an array of another type."""

    def predict(self, X):
        return super().predict(X).astype("U9")


@pytest.mark.parametrize(
    ("own", "why"),
    [(KERNELS, "its best_params_ have a value of the type"), (OtherType(), "its predictions are not of the")],
)
def test_what_a_file_cannot_hold_is_computed_again(own, why, tmp_path, counted):
    options = {**BOARD, "estimators": {"own": own, "other": Nearest()}}
    y = labels(["no", "yes"])
    expected = [row.scores for row in cs.compare(X, y, **options)]
    for folds in (6, 3):
        counted.clear()
        with pytest.warns(UserWarning, match=f"The results of 'own' are not kept in '.*folds', and .*: {why}"):
            board = cs.compare(X, y, **options, resume=tmp_path / "folds")
        assert [row.scores for row in board] == expected
        assert len(counted) == folds


def test_predictions_of_another_width_of_strings_are_kept(tmp_path, counted):
    options = {**BOARD, "estimators": {"own": OfStrings()}}
    for folds in (3, 0):
        counted.clear()
        board = cs.compare(X, labels(["no", "yes"]), **options, resume=tmp_path / "folds")
        assert board[0].parts[0].predictions.dtype == "U9"
        assert len(counted) == folds


# -- files of other comparisons
OTHERS = {
    "the views": {"X": cs.Views(a=A, b=B + 1e-9)},
    "the views ": {"X": HOLES},  # one of them is missing
    "the views  ": {"X": cs.Views(a=A, b=B, sample_names=[f"s{i}" for i in range(N)])},
    "the targets, the folds and the inner folds": {"y": 1 - PLACES, "random_state": 1},
    "the groups, the folds and the inner folds": {"groups": np.arange(N) % 9},
    "the sample weights": {"sample_weight": np.full(N, 2.0)},
    "the folds": {"cv": 4},
    "the inner folds": {"inner_cv": KFold(4)},
    "the measures": {"scoring": ["accuracy", "f1"]},
    "the measures ": {"scoring": {"accuracy": lambda model, X, y: 1.0}},
    "the preparation and the estimators (ridge, nearest)": {"prepare": "standardize"},
    "the estimators (ridge)": {"estimators": {"ridge": (RidgeClassifier(), {"alpha": [1]}), "nearest": Nearest()}},
    "the estimators (ridge) ": {"estimators": {"ridge": RidgeClassifier(tol=0.1), "nearest": Nearest()}},
    "the estimators (nearest)": {"estimators": {"ridge": RidgeClassifier()}},
    "the estimators (their order)": {"estimators": {"nearest": Nearest(), "ridge": RidgeClassifier()}},
}


@pytest.mark.parametrize("differing", OTHERS)
def test_a_file_of_another_comparison_is_refused_and_stays(differing, tmp_path):
    file = tmp_path / "folds"
    options = {"X": X, "y": PLACES, "estimators": {"ridge": RidgeClassifier(), "nearest": Nearest()}, **BOARD}
    cs.compare(**options, resume=file)
    before = file.read_bytes()
    sentence = f"'{file}' holds another comparison, which differs in {differing.strip()}. Name another file, or remove"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        cs.compare(**options | OTHERS[differing], resume=file)
    assert file.read_bytes() == before
    cs.compare(**options, resume=file, n_jobs=2, verbose=True)  # these do not matter
    assert file.read_bytes() == before


def test_a_file_of_other_versions_is_refused(tmp_path, monkeypatch):
    file, options = tmp_path / "folds", {"estimators": {"nearest": Nearest()}, **BOARD}
    cs.compare(X, PLACES, **options, resume=file)
    for name, value, what in [
        ("__version__", "0.0.1", "the version of consilience"),
        ("code_digest", lambda: "other", "the source files of consilience"),
        ("version", lambda name: "1.0", "the versions of Python and its packages"),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(_kept_folds, name, value)
            with pytest.raises(ValueError, match=f"differs in {what}. Name another file, or remove this one.$"):
                cs.compare(X, PLACES, **options, resume=file)
    file.write_bytes(file.read_bytes().replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(ValueError, match=f"'{file}' is of another version of consilience. Name another file, or"):
        cs.compare(X, PLACES, **options, resume=file)


COSTS = {"wrong": 1.0}


def cost(model, X, y):
    return -paid(np.mean(model.predict(X) != y))


def paid(share):
    return COSTS["wrong"] * share


def test_constants_of_your_own_functions_count(tmp_path, monkeypatch):
    options, file = {"estimators": {"a": Nearest()}, "scoring": cost, **BOARD}, tmp_path / "folds"
    first = cs.compare(X, PLACES, **options, resume=file)
    assert cs.compare(X, PLACES, **options, resume=file)[0].score == first[0].score
    monkeypatch.setitem(COSTS, "wrong", 100.0)
    with pytest.raises(ValueError, match="differs in the measures"):
        cs.compare(X, PLACES, **options, resume=file)


def test_the_code_of_your_own_classes_counts(tmp_path):
    def made(sign):
        class Mine(Nearest):
            def decision_function(self, X):
                return sign * super().decision_function(X)

        return Mine()

    class Mine(Nearest):
        def predict(self, X):
            return self.classes_[:1].repeat(len(X))

    file = tmp_path / "folds"
    cs.compare(X, PLACES, estimators={"m": made(1)}, **BOARD, resume=file)
    cs.compare(X, PLACES, estimators={"m": made(1)}, **BOARD, resume=file)
    for other in (made(-1), Mine()):
        with pytest.raises(ValueError, match=r"differs in the estimators \(m\)"):
            cs.compare(X, PLACES, estimators={"m": other}, **BOARD, resume=file)


def test_the_file_is_recognized_by_another_process(tmp_path, monkeypatch, capfd):
    code = (
        "import numpy as np, consilience as cs; from sklearn.linear_model import RidgeClassifier\n"
        "X = {'a': np.arange(40.0).reshape(20, 2) % 7, 'b': np.arange(20.0)[:, None] % 3}\n"
        "board = cs.compare(X, np.arange(20) % 2, cv=2, inner_cv=2, resume='folds', scoring=['f1', 'roc_auc'],\n"
        "    estimators={'r': (RidgeClassifier(), {'alpha': [1, 2]})}, baselines=False, prepare='standardize')\n"
        "print(len(open('folds').readlines()), [row.fit_time for row in board], flush=True)\n"
    )
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    first, second = capfd.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("3 ")


# -- files that are damaged or something else
@pytest.fixture
def kept(tmp_path):
    file = tmp_path / "folds"
    cs.compare(X, PLACES, **BOARD, estimators={"own": Nearest()}, resume=file)
    return file


def again(file):
    return cs.compare(X, PLACES, **BOARD, estimators={"own": Nearest()}, resume=file)


@pytest.mark.parametrize("text", ["y,a\n1,2\n", "{}", "[]\n", '{"consilience": 3, "of": 1}\n', "\x00" * 99, "\n\n"])
def test_a_file_of_anything_else_is_refused_and_stays(text, tmp_path):
    file = tmp_path / "folds"
    file.write_text(text)
    sentence = f"'{file}' is not a file of kept folds. Name another file for `resume` (--resume)."
    with pytest.raises(ValueError, match=re.escape(sentence)):
        again(file)
    assert file.read_text() == text


def test_a_damaged_line_is_refused_and_stays(kept):
    lines = kept.read_bytes().split(b"\n")
    changed = lines[2].replace(b'"fold": 1', b'"fold": 2')
    for number, damaged in [
        (3, [*lines[:2], changed, *lines[3:]]),
        (3, [*lines[:2], lines[2][:-9], *lines[3:]]),
        (2, [lines[0], b"", *lines[1:]]),
        (2, [lines[0], b"[" * 100_000, *lines[1:]]),
    ]:
        kept.write_bytes(b"\n".join(damaged))
        sentence = f"'{kept}' is damaged: line {number} cannot be read. Name another file, or remove this one to start"
        with pytest.raises(ValueError, match=re.escape(sentence)):
            again(kept)
        assert kept.read_bytes() == b"\n".join(damaged)
    kept.write_bytes(b"\n".join([*lines[:2], *lines[1:]]))
    with pytest.raises(ValueError, match="is damaged: line 3 is there twice"):
        again(kept)
    kept.write_bytes(lines[0])
    with pytest.raises(ValueError, match="is damaged: its first line has no end"):
        again(kept)


WRONG = {
    "name": lambda line: line.update(estimator="other"),
    "fold": lambda line: line.update(fold=3),
    "no fold": lambda line: line.update(fold=True),
    "number of predictions": lambda line: line["result"]["predictions"]["places"].update(shape=[2], bytes="AAAA" * 4),
    "place": lambda line: line["result"]["predictions"]["places"].update(bytes="/" * 112),
    "type": lambda line: line["result"]["predictions"].update(type="|V8"),
    "type of numbers": lambda line: line["result"]["decisions"].update(type="|V8"),
    "shape": lambda line: line["result"]["decisions"].update(shape=[-14, -2]),
    "width": lambda line: line["result"]["decisions"].update(shape=[28, 1]),
    "bytes": lambda line: line["result"]["decisions"].update(bytes="a*b"),
    "measure": lambda line: line["result"].update(measures={"r2": "0x1p+0"}),
    "number": lambda line: line["result"]["measures"].update(accuracy="0x1p+99999"),
    "reason": lambda line: line["result"].update(undefined={"accuracy": 3}),
    "index": lambda line: line["result"].update(best_params={"index": 0}),
    "parameters": lambda line: line["result"].update(best_params={"list": []}),
    "parameter": lambda line: line["result"].update(best_params={"dict": {"a": {"object": "os.system"}}}),
    "error": lambda line: line["result"].update(error=3),
    "result": lambda line: line.update(result=[]),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_line_that_does_not_fit_the_comparison_is_refused(what, kept):
    """Also if its digest is right."""
    head, first, *rest = kept.read_text().splitlines(keepends=True)
    line = json.loads(first)
    del line["digest"]
    WRONG[what](line)
    line["digest"] = _kept_folds._line_digest(line, head.rstrip("\n"))
    kept.write_text("".join([head, json.dumps(line) + "\n", *rest]))
    with pytest.raises(ValueError, match="is damaged: line 2 cannot be read"):
        again(kept)


def test_one_process_at_a_time(kept):
    with (
        _kept_folds.hold_lock(kept.with_name("folds.lock"), str),
        pytest.raises(
            OSError, match=f"Process {os.getpid()} works on the comparison in '{kept}'. Wait for it, or name"
        ),
    ):
        again(kept)
    kept.with_name("folds.lock").write_text("999999999")  # of a process that was killed
    again(kept)
    assert os.listdir(kept.parent) == ["folds"]


def test_places_that_cannot_be_files(tmp_path):
    for path, sentence in [(tmp_path, "is a folder"), (tmp_path / "no" / "folds", "does not exist. Create it first")]:
        with pytest.raises(OSError, match=sentence):
            again(path)
    if os.path.exists("/dev/null"):
        with pytest.raises(OSError, match="'/dev/null' is a device or a pipe"):
            again("/dev/null")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_has_a_sentence(kept):
    with open("/dev/full", "ab", buffering=0) as full, pytest.raises(OSError, match="'folds' cannot be written: No"):
        _kept_folds._append(full, "folds", "", None, ("own", 0), "An error.")


def test_an_object_that_cannot_be_recognized_is_refused(tmp_path):
    scorer = get_scorer("accuracy")
    with open(os.devnull) as file:
        own = {"own": Nearest(power=file)}
        with pytest.raises(TypeError, match=r"`resume` \(--resume\) needs to recognize the estimator 'own', which"):
            cs.compare(X, PLACES, **BOARD, estimators=own, scoring=scorer, resume=tmp_path / "folds")
    assert os.listdir(tmp_path) == []


# -- the command
def test_the_command_continues_after_ctrl_c(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = np.column_stack([A, B, PLACES])
    np.savetxt("data.csv", table, delimiter=",", header="a__1,a__2,a__3,b__1,b__2,y", comments="", fmt="%.6g")
    words = ["compare", "data.csv", "-y", "y", "-e", "LateFusion", "-e", "EarlyFusion", "--cv", "2", "--jobs", "1"]

    def run(*more):
        monkeypatch.setattr(sys, "argv", ["consilience", *words, *more])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        return ended.value.code, capsys.readouterr()

    assert run("--csv", "whole.csv")[0] in (0, None)
    calls, before = [], _running.run_fold

    def stopped(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return before(*given)

    monkeypatch.setattr(_running, "run_fold", stopped)
    code, said = run("--csv", "board.csv", "--resume", "folds.jsonl")
    assert (code, said.err.splitlines()[-1]) == (
        130, "Stopped. Finished folds are in 'folds.jsonl': the same command continues."
    )  # fmt: skip
    assert not os.path.exists("board.csv")
    assert run("--csv", "board.csv", "--resume", "folds.jsonl")[0] in (0, None)
    assert len(calls) == 5
    boards = []
    for name in ("whole.csv", "board.csv"):
        with open(name, encoding="utf-8", newline="") as file:
            boards.append([{k: v for k, v in row.items() if k != "fit_time"} for row in csv.DictReader(file)])
    assert boards[0] == boards[1]
    code, said = run("--resume", "folds.jsonl", "--seed", "3")
    assert code == 1
    assert "Error: 'folds.jsonl' holds another comparison" in said.err.replace(str(tmp_path) + os.sep, "")
    code, said = run("--resume", "data.csv")
    assert "'data.csv' is an input and would be overwritten" in said.err
