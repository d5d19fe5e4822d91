"""Progressive validation: every source, checkpoints, interrupts; the river converter; displays."""

import json
import re
import signal
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

import consilience as cs
from consilience import Views, read_stream
from consilience.kernels import RBF, Spectrum


def stream(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    A, B = rng.normal(size=(n, 3)) + y[:, None], rng.normal(size=(n, 2)) - y[:, None]
    B[rng.random(n) < 0.2] = np.nan
    return Views(audio=A, video=B), np.array(["x", "y", "z"])[y]


def rows(X, y):
    for i in range(len(y)):
        yield {name: X[name][i] for name in X.names if X.present(name)[i]}, y[i]


def chunks(X, y, size):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


def as_parquet(X, y, path):
    table = {f"{name}__{j}": X[name][:, j] for name in X.names for j in range(X[name].shape[1])}
    pq.write_table(pa.table({**table, "y": y}), path)
    return path


def lists(X):
    """The rows of each view as lists, None where the view is missing."""
    return {
        name: [row.tolist() if there else None for row, there in zip(X[name], X.present(name), strict=True)]
        for name in X.names
    }


def as_lists(X, y, path):
    pq.write_table(pa.table({**lists(X), "label": y}), path)
    return path


def as_json(X, y, path):
    records = pa.table({**lists(X), "y": y}).to_pylist()
    return written(path, "\n".join(map(json.dumps, records)) + "\n\n")


def as_folder(X, y, path):
    path.mkdir()
    for k, (some, labels) in enumerate(chunks(X, y, 110)):
        as_parquet(some, labels, path / f"part-{k}.parquet")
    return path


def written(path, text):
    path.write_text(text)
    return path


X, y = stream()
SOURCES = {
    "views": lambda folder: (X, y),
    "single samples": lambda folder: (rows(X, y),),
    "chunks": lambda folder: (chunks(X, y, 77),),
    "chunks as dicts": lambda folder: (({n: A[n] for n in A.names}, labels.tolist()) for A, labels in chunks(X, y, 50)),
    "parquet": lambda folder: (as_parquet(X, y, folder / "s.parquet"),),
    "parquet of lists": lambda folder: (as_lists(X, y, folder / "s.parquet"), {"target": "label"}),
    "folder": lambda folder: (as_folder(X, y, folder / "parts"),),
    "json lines": lambda folder: (as_json(X, y, folder / "s.jsonl"),),
}


@pytest.mark.parametrize("estimator", [cs.OrthogonalPerceptron(average=True), cs.KernelPerceptron(RBF(0.2))])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_is_the_same_stream(source, estimator, tmp_path):
    whole = cs.progressive_validation(expected := clone(estimator), X, y)
    given = SOURCES[source](tmp_path)
    given = (given,) if not isinstance(given, tuple) else given
    options = given[-1] if isinstance(given[-1], dict) else {}
    model = clone(estimator)
    result = cs.progressive_validation(model, *[g for g in given if g is not options], chunk=64, **options)
    assert (result.n_samples, result.n_mistakes) == (whole.n_samples, whole.n_mistakes)
    for name in ("measures", "baseline", "fading"):  # scores by kernels agree up to rounding
        assert getattr(result, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    np.testing.assert_array_equal(result.curve, whole.curve)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-9)
    share = f"{result.n_mistakes / 3:.2f}%"
    assert str(result).startswith(f"{result.n_mistakes} mistakes in 300 samples, an error of {share}.")


@pytest.mark.parametrize(
    "estimator", [cs.OrthogonalPerceptron(average=True), cs.MultiCueClassifier(RBF(0.2), threshold=0.3)]
)
def test_a_stream_continues_from_its_checkpoint(estimator, tmp_path):
    path = tmp_path / "stream.cons"
    whole = clone(estimator)
    expected = cs.progressive_validation(whole, X, y)
    first = clone(estimator)
    cs.progressive_validation(first, X, y, limit=130, checkpoint=path, every=50)
    again = clone(estimator)
    result = cs.progressive_validation(again, rows(X, y), checkpoint=path, every=50, resume=True)
    assert (result.n_samples, result.n_mistakes) == (expected.n_samples, expected.n_mistakes)
    np.testing.assert_array_equal(result.curve, expected.curve)
    np.testing.assert_allclose(again.decision_function(X), whole.decision_function(X), atol=1e-9)
    done = cs.progressive_validation(clone(estimator), X, y, checkpoint=path, resume=True)
    assert done.n_samples == 300
    with pytest.raises(FileExistsError, match=r"exists\. Continue from it with resume=True \(--resume\), or remove it"):
        cs.progressive_validation(clone(estimator), X, y, checkpoint=path)
    with pytest.raises(ValueError, match="Give a model with the same parameters"):
        cs.progressive_validation(cs.OnlinePerceptron(), X, y, checkpoint=path, resume=True)
    cs.save(whole, tmp_path / "model.cons")
    with pytest.raises(ValueError, match="is a model file and not a checkpoint of a stream"):
        cs.progressive_validation(clone(estimator), X, y, checkpoint=tmp_path / "model.cons", resume=True)


def test_checkpoints_are_written_on_the_way(tmp_path):
    path = tmp_path / "stream.cons"
    written = []
    watched = ((written.append(path.exists()), pair)[1] for pair in rows(X, y))
    cs.progressive_validation(cs.OnlinePerceptron(), watched, checkpoint=path, every=40)
    assert written.index(True) in (40, 41)


def test_control_c_saves_and_says_where(tmp_path):
    path = tmp_path / "stream.cons"
    model, whole = cs.OrthogonalPerceptron(average=True), cs.OrthogonalPerceptron(average=True)
    cs.progressive_validation(whole, X, y)

    def interrupted():
        for k, (some, labels) in enumerate(chunks(X, y, 60)):
            if k == 2:
                signal.raise_signal(signal.SIGINT)
            yield some, labels

    stopped = r"Stopped after 120 samples of the stream\. Saved to '.*stream.cons'\. Continue with resume=True"
    with pytest.raises(KeyboardInterrupt, match=stopped):
        cs.progressive_validation(model, interrupted(), checkpoint=path)
    again = cs.OrthogonalPerceptron(average=True)
    cs.progressive_validation(again, X, y, checkpoint=path, resume=True)
    np.testing.assert_allclose(again.decision_function(X), whole.decision_function(X))
    with pytest.raises(KeyboardInterrupt, match="The model keeps what it has learned"):
        cs.progressive_validation(model, interrupted())


def test_an_interrupt_waits_until_a_piece_is_whole(monkeypatch):
    model = cs.KernelPerceptron(RBF(0.2)).partial_fit(X[:100], y[:100])
    original = type(model._machine)._learn_block

    def with_a_signal(self, *given):
        signal.raise_signal(signal.SIGINT)
        return original(self, *given)

    monkeypatch.setattr(type(model._machine), "_learn_block", with_a_signal)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[100:], y[100:])
    monkeypatch.setattr(type(model._machine), "_learn_block", original)
    assert model.n_samples_seen_ == 300  # the piece was finished first
    once = cs.KernelPerceptron(RBF(0.2)).partial_fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=1e-9)


def test_learning_in_a_thread_leaves_signals_alone():
    model, before = cs.OnlinePerceptron(), signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: cs.progressive_validation(model, X, y))
    thread.start()
    thread.join()
    assert model.n_samples_seen_ == 300
    assert signal.getsignal(signal.SIGINT) is before


def test_columns_of_a_file_go_by_their_names(tmp_path):
    """Keys in another order, a view that a whole chunk lacks, strings."""
    lines = []
    for i in range(100):
        record = {f"audio__{j}": X["audio"][i, j] for j in range(3)}
        if i >= 40:
            record = {**{f"video__{j}": float(i + j) for j in range(2)}, **dict(reversed(record.items()))}
        lines.append(json.dumps({**record, "y": str(y[i]), "text": "ab" * (i % 5)}))
    path = written(tmp_path / "a.jsonl", "\n".join(lines))
    views = {"audio": [f"audio__{j}" for j in range(3)], "text": ["text"]}
    read = [A for A, _ in read_stream(path, views=views, chunk=20)]
    np.testing.assert_allclose(np.vstack([A["audio"] for A in read]), X["audio"][:100])
    assert [len(t) for A in read for t in A["text"]] == [2 * (i % 5) for i in range(100)]
    model = cs.KernelPerceptron(kernel={"text": Spectrum(1), "audio": RBF(0.1), "video": RBF(0.1)})
    views["video"] = ["video__0", "video__1"]
    result = cs.progressive_validation(model, path, views=views, chunk=20)
    assert result.n_samples == 100
    assert model.view_names_in_ == ("audio", "text", "video")
    with pytest.raises(ValueError, match=r"Column 'text' of 'a.jsonl' has text next to columns of numbers"):
        next(read_stream(path, chunk=20))


ERRORS = {
    "`model` must be an online estimator of the library; got SGDClassifier": lambda f: {"model": SGDClassifier()},
    "The stream has samples alone; give their labels by y.": lambda f: {"y": None},
    "Item 0 of the stream is not a pair of views and label; got int": lambda f: {"stream": [1, 2], "y": None},
    "The stream has 300 samples and y has 3; they must agree.": lambda f: {"y": [1, 2, 3]},
    "No column 'label' is in 'a.parquet', only 'audio__0": (
        lambda f: {"stream": as_parquet(X, y, f / "a.parquet"), "y": None, "target": "label"}
    ),
    "No column of 'a.parquet' is of the view 'a': q.": (
        lambda f: {"stream": as_parquet(X, y, f / "a.parquet"), "y": None, "views": {"a": ["q"]}}
    ),
    "A file has its own labels": lambda f: {"stream": f / "a.parquet"},
    "The 'every' parameter of progressive_validation must be an int in the range [1, inf). Got 0 instead.": (
        lambda f: {"every": 0}
    ),
    "does not exist. Create it first": lambda f: {"checkpoint": "no/such/folder/a.cons"},
}


@pytest.mark.parametrize("message", ERRORS)
def test_bad_streams_raise(message, tmp_path):
    given = {"model": cs.OnlinePerceptron(), "stream": X, "y": y, **ERRORS[message](tmp_path)}
    with pytest.raises((ValueError, TypeError, OSError), match=re.escape(message)):
        cs.progressive_validation(given.pop("model"), given.pop("stream"), given.pop("y"), **given)


def test_unlabeled_samples_of_a_stream_are_skipped():
    holes = [None if i % 5 == 0 else label for i, label in enumerate(y)]
    one, other = cs.OnlinePerceptron(), cs.OnlinePerceptron()
    result = cs.progressive_validation(one, X, np.array(holes, dtype=object))
    single = cs.progressive_validation(other, rows(X, holes))
    assert result.n_samples == single.n_samples == 240
    assert result.n_mistakes == single.n_mistakes


def test_the_model_continues_from_its_state():
    model = cs.OnlinePerceptron().partial_fit(X[:100], y[:100])
    before = model.n_mistakes_
    result = cs.progressive_validation(model, X[100:], y[100:])
    assert result.n_samples == 200
    assert model.n_mistakes_ > before
    assert result.curve[0, 0] == 1


# -- river
def test_estimators_work_through_rivers_converter():
    compat = pytest.importorskip("river.compat", reason="river is not installed")
    from river import datasets, evaluate, metrics

    model = compat.convert_sklearn_to_river(cs.OnlinePerceptron(), classes=[False, True])
    seen = []
    for x, label in datasets.Phishing().take(300):
        model.learn_one(x, label)
        seen.append((x, label))
    direct = cs.OnlinePerceptron()
    for x, label in seen:
        direct.partial_fit([list(x.values())], [label], classes=[False, True])
    assert model.estimator.n_mistakes_ == direct.n_mistakes_
    some = [x for x, _ in seen[:20]]
    assert [model.predict_one(x) for x in some] == direct.predict([list(x.values()) for x in some]).tolist()
    again = compat.convert_sklearn_to_river(cs.KernelPerceptron(RBF(0.5)), classes=[False, True])
    metric = evaluate.progressive_val_score(datasets.Phishing().take(200), again, metrics.Accuracy())
    assert metric.get() > 0.6


# -- displays
def test_the_display_draws_the_curve_and_the_bound():
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    model = cs.OrthogonalPerceptron().partial_fit(X, y)
    display = cs.MistakesDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.line_.get_xydata(), model.error_curve_)
    assert display.bound >= model.n_mistakes_
    assert [line.get_linestyle() for line in display.ax_.lines] == ["-", "--"]
    for model in (cs.MultiCueClassifier(RBF(0.2)), cs.VectorPerceptron(RBF(0.2))):
        assert cs.MistakesDisplay.from_estimator(model.partial_fit(X, y), X, y).bound is None
    _, ax = plt.subplots()
    result = cs.progressive_validation(cs.OnlinePerceptron(), X, y)
    assert cs.MistakesDisplay.from_result(result, ax=ax, name="perceptron").ax_ is ax
    assert [line.get_label() for line in ax.lines] == ["perceptron", "baseline"]
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), result.baseline_curve)
    assert ax.get_xlabel() == "samples seen"
    plt.close("all")


def test_odd_streams():
    result = cs.progressive_validation(model := cs.OnlinePerceptron(), X[:4], ["a", float("nan"), "b", "a"])
    assert model.classes_.tolist() == ["a", "b"]
    assert result.n_samples == 3
    pulled = []
    counted = ((pulled.append(1), pair)[1] for pair in rows(X, y))
    cs.progressive_validation(cs.OnlinePerceptron(), counted, limit=10)
    assert len(pulled) == 10
    single = ((X[i : i + 1], y[i]) for i in range(20))
    assert cs.progressive_validation(cs.OnlinePerceptron(), single).n_samples == 20
