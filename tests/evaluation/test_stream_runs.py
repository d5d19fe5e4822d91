"""Runs along a stream: files, errors, labels that come later, drift, weights, checkpoints of all this."""

import csv
import io
import json
import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import consilience as cs
from consilience import Views
from consilience.evaluation import progressive
from consilience.evaluation._stream_items import SampleStream
from consilience.io import read_checkpoint
from consilience.online._predictions import StreamPredictions


def stream(n=300, seed=0, drift_at=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    A, B = rng.normal(size=(n, 3)) + 2 * y[:, None], rng.normal(size=(n, 2)) - y[:, None]
    if drift_at is not None:
        y[drift_at:] = 1 - y[drift_at:]
    return Views(audio=A, video=B), np.array(["x", "y"])[y]


X, y = stream()


def frame_of(X, y, **columns):
    table = {f"{name}__{j}": X[name][:, j] for name in X.names for j in range(X[name].shape[1])}
    return pd.DataFrame({**table, "y": y, **columns})


def json_lines(records, path):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def as_records(X, y, **columns):
    rows = [{name: X[name][i].tolist() for name in X.names} | {"y": y[i]} for i in range(len(y))]
    return [{**row, **{name: values[i] for name, values in columns.items()}} for i, row in enumerate(rows)]


def validated(*given, **options):
    model = cs.OrthogonalPerceptron(average=True)
    return cs.progressive_validation(model, *given, **options), model


class RunningMean(RegressorMixin, BaseEstimator):
    """The mean of the targets so far, as an online estimator."""

    def predict_then_learn(self, X, y, sample_weight=None, classes=None, view_margins=False):
        if any(not isinstance(value, float) for value in y):
            raise ValueError("Targets must be numbers.")
        before = np.r_[getattr(self, "seen_", np.zeros(0)), np.asarray(y, dtype=float)]
        first = len(before) - len(y)
        made = [before[: first + k].mean() if first + k else 0.0 for k in range(len(y))]
        self.seen_ = before
        return StreamPredictions(np.arange(len(y)), before[first:], np.array(made), None, None, None, (), None)

    def predict_one(self, x):
        return self.seen_.mean() if hasattr(self, "seen_") else None

    def forget(self, share, view=None):
        self.seen_ = self.seen_[:0]


# -- files along the way
def test_every_prediction_is_written(tmp_path):
    for path in (tmp_path / "p.csv", tmp_path / "p.jsonl"):
        result, _ = validated(X, y, predictions=path, chunk=70)
        if path.suffix == ".csv":
            with open(path, newline="") as file:
                rows = list(csv.DictReader(file))
            shares = [json.loads(row["probabilities"]) for row in rows]
        else:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            shares = [row["probabilities"] for row in rows]
        assert [int(row["row"]) for row in rows] == list(range(300))
        assert [row["target"] for row in rows] == y.tolist()
        assert sum(row["target"] != row.get("prediction") for row in rows) == result.n_mistakes
        assert all(sum(own.values()) == pytest.approx(1) for own in shares[1:])
    named = cs.Views(X, sample_names=[f"s{i}" for i in range(300)])
    validated(named, y, predictions=path)
    assert json.loads(path.read_text().splitlines()[7])["id"] == "s7"
    cs.progressive_validation(RunningMean(), X, np.arange(300.0).tolist(), predictions=path)
    assert json.loads(path.read_text().splitlines()[2]) == {"row": 2, "target": 2.0, "prediction": 0.5}


def test_the_log_has_a_line_every_so_many_rows(tmp_path):
    X, y = stream(700, drift_at=400)
    given = {"log_every": 200, "window": 100, "drift": True}
    result, _ = validated(X, y, log=tmp_path / "log.jsonl", chunk=130, **given)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines] == [200, 400, 600, 700]
    assert [drift for line in lines for drift in line["drifts"]] == [asdict(event) for event in result.drifts]
    assert result.drifts
    assert lines[-1]["measures"] == result.measures
    assert lines[-1]["baseline_error"] == result.baseline_error
    assert lines[1]["window"]["samples"] == 400
    assert lines[1]["rate"] > 0
    text = io.StringIO()
    validated(X, y, log=text, chunk=700, **given)
    assert [json.loads(line)["error"] for line in text.getvalue().splitlines()] == [line["error"] for line in lines]


# -- errors
def bad_rows(X, y, rows):
    A = X["audio"].copy()
    A[rows, 1] = np.inf
    return Views(audio=A, video=X["video"])


def test_refused_rows_are_skipped_counted_and_kept(tmp_path):
    rows, good = [5, 150, 151], np.delete(np.arange(300), [5, 150, 151])
    expected, whole = validated(X[good], y[good])
    path = tmp_path / "bad.jsonl"
    result, model = validated(bad_rows(X, y, rows), y, on_error="skip", quarantine=path, chunk=64)
    assert (result.n_skipped, result.n_samples, result.measures) == (3, 297, expected.measures)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["row"] for line in lines] == rows
    assert "infinit" in lines[0]["error"]
    assert lines[0]["content"]["target"] == y[5]
    assert "3 rows were refused and skipped." in str(result)
    fresh = cs.OrthogonalPerceptron()
    with pytest.raises(ValueError, match=r"Rows 128 to 191 of the stream: .*infinit"):
        cs.progressive_validation(fresh, bad_rows(X, y, [150]), y, chunk=64)
    assert fresh.n_samples_seen_ == 128  # nothing of the refused piece was learned
    with pytest.raises(ValueError, match=r"All 10 rows of the stream were refused\. The first: .*infinit"):
        validated(bad_rows(X, y, slice(None))[:10], y[:10], on_error="skip")
    with pytest.raises(ValueError, match="on_error='skip'"):
        validated(X, y, quarantine=path)


def test_lines_that_cannot_be_read_are_skipped_too(tmp_path):
    records = as_records(X[:100], y[:100])
    data, bad = json_lines(records, tmp_path / "s.jsonl"), tmp_path / "bad.jsonl"
    lines = data.read_text().splitlines()
    lines[4] = lines[99] = '{"audio": [1, 2'
    data.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="2 rows cannot be read"):
        result, _ = validated(data, on_error="skip", quarantine=bad, chunk=30)
    assert (result.n_samples, result.n_skipped) == (98, 2)
    refused = [json.loads(line)["row"] for line in bad.read_text().splitlines()]
    assert refused == [4, 99]


def test_the_first_samples_of_a_stream_are_read_before_it_is_learned(tmp_path):
    data = json_lines(as_records(X[:100], y[:100]), tmp_path / "s.jsonl")
    lines = data.read_text().splitlines()
    lines[4] = "{"
    data.write_text("\n".join(lines))
    given = {"on_error": "skip", "quarantine": tmp_path / "bad.jsonl"}
    for source in (data, iter(data.read_text().splitlines())):
        reading = {"chunk": 30} if source is data else {"chunk": 30, "format": "jsonl"}
        samples = SampleStream(source, None, reading)
        assert samples.first_views(skip=True).names == ("audio", "video")
        with pytest.warns(UserWarning, match="cannot be read"):
            result, _ = validated(samples, **given)
        assert (result.n_samples, result.n_skipped) == (99, 1)
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 2


# -- labels that come later
def delayed(n=120, delay=7, most=10_000):
    """Records of which every third has its label later, and what must come of them."""
    records, waiting, order = [], {}, []
    for i in range(n):
        if i - delay in waiting:
            records.append({"id": i - delay, "y": y[i - delay]})
            order.append(("learn", i - delay))
        late = i % 3 == 0
        records.append({**as_records(X[i : i + 1], y[i : i + 1])[0], "id": i, "y": None if late else y[i]})
        order.append(("see" if late else "both", i))
        waiting |= {i: True} if late else {}
    return records, order


def twin(order):
    """Learn and predict sample by sample; return the share of mistakes and the model."""
    model, made, wrong = cs.OrthogonalPerceptron(average=True), {}, []
    for what, i in order:
        x = {name: X[name][i] for name in X.names}
        if what != "learn":
            made[i] = model.predict_one(x)
            decides = made[i] is not None and len(model.classes_) == 2
            if what == "both" and decides and model.decision_function(X[i : i + 1])[0] == 0:
                made[i] = None  # a tie is a mistake
        if what != "see":
            wrong.append(made.pop(i) != y[i])
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    return wrong, model, made


@pytest.mark.parametrize("kind", ["file", "iterator", "single samples"])
def test_labels_that_come_later_score_the_first_prediction(kind, tmp_path):
    records, order = delayed()
    if kind == "file":
        given, options = json_lines(records, tmp_path / "s.jsonl"), {"ids": "id"}
    elif kind == "iterator":
        given = ((None if "audio" not in r else Views({v: [r[v]] for v in X.names}), r["y"], r["id"]) for r in records)
        options = {}
    else:
        given, options = (({v: r[v] for v in X.names if v in r}, r["y"], r["id"]) for r in records), {}
    wrong, expected, left = twin(order)
    result, model = validated(given, predictions=tmp_path / "p.jsonl", **options)
    assert (result.n_samples, result.n_mistakes, result.n_pending) == (len(wrong), sum(wrong), len(left))
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-9)
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    early = [line for line in lines if "target" not in line]
    assert len(early) == sum(what == "see" for what, _ in order)
    later = {line["row"]: line for line in lines if "target" in line}
    assert all(later[line["row"]].get("prediction") == line.get("prediction") for line in early if line["row"] in later)
    assert "label" in str(result)


def test_the_oldest_sample_is_dropped_when_too_many_wait():
    items = [({"audio": X["audio"][i]}, None if i < 10 else y[i], i) for i in range(40)]
    items += [(None, y[i], i) for i in range(10)]
    with pytest.warns(UserWarning, match=r"dropped before their label came: 6, because at most 4 .*--max-pending"):
        result, model = validated(iter(items), max_pending=4)
    assert (result.n_samples, result.n_dropped, result.n_pending) == (34, 6, 0)
    assert model.n_samples_seen_ == 34
    with pytest.warns(UserWarning, match=r"12.0% of 50 rows were refused and skipped. Write them to a file"):
        skipped, _ = validated(iter(items), max_pending=4, on_error="skip")
    assert skipped.n_skipped == 6  # labels of samples that were dropped
    numbers = [({"a": [1.0]}, 4.0, 0), ({"a": [1.0]}, None, 1), ({"a": [1.0]}, 8.0, 2), (None, 5.0, 1)]
    result = cs.progressive_validation(RunningMean(), iter(numbers))
    assert result.measures["mae"] == pytest.approx((4 + 4 + 1) / 3)


def test_rows_that_no_sample_waits_for_are_counted(tmp_path):
    x = X["audio"]
    items = [({"audio": x[i]}, y[i], i) for i in range(30)]
    items += [({"audio": x[30]}, None, 30), ({"audio": x[31]}, None, 30)]  # which waits already
    items += [(None, "x", 99), (None, y[30], 30), (None, y[30], 30)]  # one that is not known, and a label twice
    with pytest.warns(UserWarning, match=r"does not wait for one, and rows .* waits already: 3. They are ignored"):
        result, _ = validated(iter(items), checkpoint=tmp_path / "c.cons")
    assert (result.n_samples, result.n_ignored) == (31, 3)
    assert "3 rows were ignored, as no sample" in str(result)
    with pytest.warns(UserWarning, match="waits already: 3"):
        validated(iter(items), checkpoint=tmp_path / "c.cons", resume=True)
    with pytest.warns(UserWarning, match=r"8.6% of 35 rows were refused"):
        result, _ = validated(iter(items), on_error="skip", quarantine=tmp_path / "bad.jsonl")
    assert (result.n_skipped, result.n_ignored) == (3, 0)
    errors = [json.loads(line)["error"] for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert errors[0] == "The sample with the id 30 waits for its label already."
    assert errors[1] == "No sample with the id 99 waits for a label."


# -- weights
def test_weights_of_arrays_and_of_a_column(tmp_path):
    w = np.random.default_rng(0).random(300)
    expected, _ = validated(X, y, sample_weight=w, chunk=70)
    assert expected.error != expected.n_mistakes / 300
    path = tmp_path / "s.csv"
    frame_of(X, y, heavy=w).to_csv(path, index=False)
    result, model = validated(path, sample_weight="heavy", chunk=50)
    assert model.view_names_in_ == ("audio", "video")
    for name, value in expected.measures.items():
        assert result.measures[name] == pytest.approx(value)
    errors = {
        "fewer than there are samples": (X, y, w[:5]),
        "of a file; give an array": (X, y, "heavy"),
        "as the name of their column": (path, None, w),
        "An iterator has no sample weights": (iter([]), None, w),
    }
    for message, (source, labels, given) in errors.items():
        with pytest.raises(ValueError, match=message):
            validated(source, labels, sample_weight=given)


# -- drift
class Forgetful(cs.OrthogonalPerceptron):
    """Notes what it was told to forget, and when."""

    def forget(self, share, view=None):
        self.told = [*getattr(self, "told", []), (self.n_samples_seen_, share, view)]


@pytest.mark.parametrize(
    ("action", "expected"), {"forget": (0.5, None), "restart": (0.0, None), "lower_view": (0.5, "audio")}.items()
)
def test_the_model_acts_on_drift_at_the_same_rows(action, expected):
    X, y = stream(2500, drift_at=900)
    told = []
    for chunk in (1000, 77, 13):
        model = Forgetful(average=True)
        result = cs.progressive_validation(model, X, y, drift=True, by_view=True, on_drift=action, chunk=chunk)
        told.append(model.told)
        assert result.drifts
        assert {event.action for event in result.drifts} <= {action, "tell"}
    assert told[0] == told[1] == told[2]
    assert expected in {(share, view) for _, share, view in told[0]}
    assert {seen % 1024 for seen, _, _ in told[0]} == {0}


# -- checkpoints
class Killed(Exception):
    """The process ends here."""


def killed_at(monkeypatch, time, *given, **options):
    """Run until the checkpoint has been written so often; then the process ends."""
    left, write = [time], progressive._write_checkpoint

    def counted(run, path):
        write(run, path)
        left[0] -= 1
        if not left[0]:
            run.learn = raise_killed  # something is written after the checkpoint, and then it ends

    def raise_killed(piece):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(progressive, "_write_checkpoint", counted)
        patch.setattr(progressive, "_COSTS", np.inf)
        with pytest.raises(Killed):
            validated(*given, **options)


def test_a_killed_run_ends_with_the_same_result_and_files(monkeypatch, tmp_path):
    X, y = stream(600, drift_at=300)
    labels = [None if i % 10 == 0 else label for i, label in enumerate(y.tolist())]
    records = as_records(X, labels, id=list(range(600)))
    for i in (33, 207, 401):
        records[i]["audio"] = [1.0, 1e999, 0.0]
    records += [{"id": i, "y": y[i]} for i in range(0, 600, 20)]
    data = json_lines(records, tmp_path / "s.jsonl")

    def files(name):
        return {"predictions": tmp_path / f"{name}.csv", "quarantine": tmp_path / f"{name}.bad.jsonl",
                "checkpoint": tmp_path / f"{name}.cons"}  # fmt: skip

    given = {"ids": "id", "drift": True, "by_view": True, "on_error": "skip", "chunk": 40, "every": 70, "window": 50,
             "measures": ["roc_auc", "log_loss"]}  # fmt: skip
    whole, model = validated(data, **files("whole"), **given)
    assert whole.n_skipped == 3
    assert whole.drifts
    assert whole.n_pending == 30
    killed_at(monkeypatch, 2, data, **files("killed"), **given)
    with open(tmp_path / "killed.csv", "a") as file:
        file.write("999,half a li")
    killed_at(monkeypatch, 3, data, **files("killed"), **given, resume=True)
    result, again = validated(data, **files("killed"), **given, resume=True)
    assert result.to_dict() == whole.to_dict()
    np.testing.assert_array_equal(result.curve, whole.curve)
    np.testing.assert_array_equal(model.coef_["audio"], again.coef_["audio"])
    for ending in ("csv", "bad.jsonl"):
        assert (tmp_path / f"killed.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    stored = [cs.load(tmp_path / f"{name}.cons") for name in ("whole", "killed")]
    assert stored[0]["monitor"]["sums"]["confusion"].tobytes() == stored[1]["monitor"]["sums"]["confusion"].tobytes()
    with pytest.raises(ValueError, match="Continue with the same measures"):
        validated(data, **files("killed"), **{**given, "window": 60}, resume=True)


def test_a_pipe_goes_on_with_what_comes(tmp_path):
    path = tmp_path / "c.cons"
    whole, expected = validated(X, y)
    validated(X[:130], y[:130], checkpoint=path)
    pipe = ((X[i : i + 1], y[i]) for i in range(130, 300))
    result, model = validated(pipe, checkpoint=path, resume="continue", predictions=tmp_path / "p.jsonl")
    assert (result.n_samples, result.measures) == (300, whole.measures)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-9)
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])["row"] == 130


def test_what_was_learned_before_an_error_is_in_the_checkpoint(tmp_path):
    path, source = tmp_path / "c.cons", (bad_rows(X, y, [150]), y)
    with pytest.raises(ValueError, match=r"Rows 128 to 191 of the stream: .*infinit"):
        validated(*source, chunk=64, checkpoint=path)
    result, _ = validated(X, y, checkpoint=path, resume=True)
    assert result.to_dict() == validated(X, y)[0].to_dict()
    assert read_checkpoint(path)["position"] == 300


def test_checkpoints_take_little_of_the_time(monkeypatch, tmp_path):
    written, write = [], progressive._write_checkpoint
    monkeypatch.setattr(
        progressive, "_write_checkpoint", lambda run, path: (written.append(run.position), write(run, path))
    )
    validated(X, y, checkpoint=tmp_path / "c.cons", every=1)
    assert written[0] == 1  # the first, then few, and the end
    assert written[-1] == 300
    assert len(written) < 100


def test_a_metric_of_another_library_is_not_for_checkpoints(tmp_path):
    metrics = pytest.importorskip("river.metrics", reason="river is not installed")
    result, _ = validated(X, y, measures=[metrics.MacroF1(), "error"])
    assert list(result.measures) == ["error", "MacroF1"]
    with pytest.raises(ValueError, match="cannot be stored in a checkpoint"):
        validated(X, y, measures=metrics.MacroF1(), checkpoint=tmp_path / "c.cons")


ERRORS = {
    "progressive_validation has no option 'mesures'. The options of a stream are: measures": {"mesures": "f1"},
    "The 'on_error' parameter of progressive_validation must be a str among": {"on_error": "ignore"},
    "The 'log_every' parameter of progressive_validation must be an int": {"log_every": 0},
}


@pytest.mark.parametrize("message", ERRORS)
def test_options_are_validated(message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        validated(X, y, **ERRORS[message])


def test_a_run_that_is_cut_at_any_row_ends_with_the_same_numbers_and_files(tmp_path):
    labels = [None if i % 5 == 0 else label for i, label in enumerate(y[:40].tolist())]
    records = as_records(X[:40], labels, id=list(range(40)))
    for i in range(0, 40, 5):  # labels that come later, some of them after the last sample of a piece
        records.insert(i + 12, {"id": i, "y": y[i]})
    data = json_lines(records, tmp_path / "s.jsonl")
    for chunk in (4096, 7):
        given = {"ids": "id", "chunk": chunk, "classes": ["x", "y"]}
        whole, _ = validated(data, predictions=tmp_path / "whole.csv", **given)
        assert (whole.n_samples, whole.n_pending) == (40, 0)
        for cut in range(1, len(records)):
            files = {"checkpoint": tmp_path / f"{chunk}.{cut}.cons", "predictions": tmp_path / "cut.csv"}
            validated(data, **files, **given, limit=cut)
            result, _ = validated(data, **files, **given, resume=True)
            assert result.to_dict() == whole.to_dict()
            assert (tmp_path / "cut.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_checkpoint_belongs_to_its_stream(tmp_path):
    table = frame_of(X, y)
    table.iloc[[97, 98, 99], :5] = np.inf  # rows that cannot be learned
    lines = table.to_csv(index=False).splitlines()
    lines[50] = "1,2"  # and one that cannot be read
    first, path, other = tmp_path / "s.csv", tmp_path / "c.cons", tmp_path / "other.csv"
    first.write_text("\n".join(lines[:101]))
    given = {"checkpoint": path, "on_error": "skip", "quarantine": tmp_path / "bad.jsonl"}
    with pytest.warns(UserWarning, match="1 row cannot be read"):
        validated(first, **given)
    other.write_text("\n".join(lines))  # the same, with another name and more rows
    result, _ = validated(other, **given, resume=True)
    assert (result.n_samples, result.n_skipped) == (296, 4)
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 4
    for content in (lines[:280], [lines[0], *lines[100:], *lines[1:100]], [lines[0], *lines[2:], *lines]):
        other.write_text("\n".join(content))
        with pytest.raises(ValueError, match="is not the stream of the checkpoint: row 299 and those"):
            validated(other, **given, resume=True)
    short = iter([({"audio": row}, label) for row, label in zip(X["audio"][:50], y, strict=False)])
    for source in ((Views(audio=X["audio"] + 1, video=X["video"]), y), (short,)):
        with pytest.raises(ValueError, match="Give the stream that the checkpoint belongs to, which may have grown"):
            validated(*source, **given, resume=True)
