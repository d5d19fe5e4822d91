"""The command `stream`: measures beside a baseline, drift, errors, files along the way, going on."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from commands import ended, refused, run, summary

import consilience as cs


def records(n=400, drift_at=None, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    A = rng.normal(size=(n, 3)) + 2 * y[:, None]
    if drift_at is not None:
        y[drift_at:] = 1 - y[drift_at:]
    return [{"a": A[i].tolist(), "b": [float(A[i, 0] > 1)], "y": "xy"[y[i]]} for i in range(n)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines(records()))
    return path


def test_the_error_stands_beside_the_baseline(tmp_path):
    path = tmp_path / "rare.jsonl"
    rng = np.random.default_rng(0)
    rows = [{"a": rng.normal(size=3).tolist(), "y": int(rng.random() < 0.03)} for _ in range(600)]
    path.write_text(lines(rows))
    found = summary("stream", path, "-e", "OnlinePerceptron", "--measures", "f1,roc_auc", "--window", 200)
    assert found["error"] > found["baseline_error"]
    assert found["compared"] == "above the baseline"
    assert list(found["measures"]) == ["error", "f1", "roc_auc"]
    assert [row["samples"] for row in found["windows"]] == [200, 400, 600]
    assert {row["class"] for row in found["by_class"]} == {"0", "1"}
    shown = run("stream", path, "-e", "OnlinePerceptron", "--report", tmp_path / "r.html").stdout
    assert re.search(r"baseline error +0\.0\d+ \(the error is above the baseline\)", shown)
    assert "balanced accuracy" in shown
    assert "<strong>the error is above the baseline</strong>" in (tmp_path / "r.html").read_text()


def test_drift_is_told_logged_and_shown(tmp_path):
    path, log, report = (tmp_path / name for name in ("s.jsonl", "log.jsonl", "r.html"))
    path.write_text(lines(records(900, drift_at=500)))
    given = ("stream", path, "-e", "OrthogonalPerceptron", "--set", "average=true", "--window", 100)
    given += ("--drift", "--by-view", "--on-drift", "forget")
    found = summary(*given, "--log", log, "--log-every", 300, "--report", report)
    events = found["drifts"]
    assert [500 < event["sample"] < 600 for event in events[:1]] == [True]
    assert {event["action"] for event in events} == {"forget"}
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["row"] for line in logged] == [300, 600, 900]
    assert [event for line in logged for event in line["drifts"]] == events
    assert [row["view"] for row in found["by_view"]] == ["a", "b"]
    text = report.read_text()
    for words in (">Error in windows</h3>", ">Drift</h3>", ">Views of the stream</h3>", "half forgotten", ">baseline<"):
        assert words in text
    assert "Drift at sample" in run(*given).stdout
    code, said = ended("stream", path, "--log", "-", "--log-every", 450)
    assert code == 0
    assert [json.loads(line)["row"] for line in said.splitlines() if line.startswith("{")] == [450, 900]


def test_bad_rows_stop_or_are_skipped(tmp_path):
    path, bad = tmp_path / "s.jsonl", tmp_path / "bad.jsonl"
    rows = lines(records(200)).splitlines()
    rows[30] = rows[30][:20]
    rows[90] = json.dumps({"a": [1.0, 1e999, 0.0], "b": [1.0], "y": "x"})
    path.write_text("\n".join(rows))
    assert "ine 31" in refused("stream", path)
    found = summary("stream", path, "--on-error", "skip", "--quarantine", bad)
    assert (found["samples"], found["skipped"], found["quarantine"]) == (198, 2, str(bad))
    assert sorted(json.loads(line)["row"] for line in bad.read_text().splitlines()) == [30, 90]
    assert "skipped            2" in run("stream", path, "--on-error", "skip").stdout


def test_predictions_and_weights(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("pqr"))
    frame["y"], frame["heavy"] = np.where(frame["p"] > 0, "pos", "neg"), rng.random(100)
    frame.to_csv(tmp_path / "s.csv", index=False)
    out, model = tmp_path / "p.csv", tmp_path / "m.cons"
    found = summary("stream", tmp_path / "s.csv", "--weights", "heavy", "--predictions", out, "--save", model)
    table = pd.read_csv(out)
    assert list(table["row"]) == list(range(100))
    wrong = table["target"] != table["prediction"]
    assert found["mistakes"] == wrong.sum()
    assert found["error"] == pytest.approx(np.average(wrong, weights=frame["heavy"]))
    assert cs.load(model).n_features_in_ == 3


def test_a_saved_model_goes_on(data, tmp_path):
    first, second, model = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "m.cons"
    text = data.read_text().splitlines(keepends=True)
    first.write_text("".join(text[:250]))
    second.write_text("".join(text[250:]))
    whole = tmp_path / "whole.cons"
    summary("stream", data, "--save", whole)
    summary("stream", first, "--save", model)
    found = summary("stream", second, "--model", model, "--save", model)
    assert (found["samples"], found["samples before"]) == (150, 250)
    again, expected = cs.load(model), cs.load(whole)
    assert again.n_samples_seen_ == 400
    np.testing.assert_allclose(again.coef_["a"], expected.coef_["a"])
    assert "has its own estimator" in refused("stream", second, "--model", model, "-e", "OnlinePerceptron")
    check = tmp_path / "c.cons"
    summary("stream", first, "--checkpoint", check)
    assert "it holds a checkpoint; continue from it by --checkpoint" in refused("stream", second, "--model", check)


def test_resuming_a_file_skips_and_a_pipe_goes_on(data, tmp_path):
    text = data.read_text().splitlines(keepends=True)
    whole = summary("stream", data)
    for name, rest in {"file": None, "pipe": "".join(text[300:])}.items():
        check = tmp_path / f"{name}.cons"
        given = ("stream", "-", "--checkpoint", check)
        assert summary(*given, text="".join(text[:300]))["samples"] == 300
        if rest is None:
            given = ("stream", data, "--checkpoint", check)
        found = summary(*given, "--resume", text=rest)
        assert (found["samples"], found["mistakes"], found["measures"]) == (400, whole["mistakes"], whole["measures"])
    assert "exists. Continue from it with resume=True (--resume)" in refused("stream", data, "--checkpoint", check)


def test_labels_that_come_later_by_id(tmp_path):
    path, rows = tmp_path / "s.jsonl", records(60)
    for i, row in enumerate(rows):
        row["id"] = f"s{i}"
    late = [{"id": row["id"], "y": row["y"]} for row in rows[20:30]]
    for row in rows[20:30]:
        row["y"] = None
    path.write_text(lines([*rows, *late[:8]]))
    found = summary("stream", path, "--id", "id", "--predictions", tmp_path / "p.csv")
    assert (found["samples"], found["pending"]) == (58, 2)
    table = pd.read_csv(tmp_path / "p.csv")
    assert table.loc[table["id"] == "s20", "target"].isna().tolist() == [True, False]
    shown = run("stream", path, "--id", "id", "--max-pending", 5).stdout
    assert re.search(r"awaited +2\ndropped +5\nignored +5\n", shown)


def test_the_views_that_were_read_are_told(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines([{"a": [i, 0.5], "ids": [1] * (i % 3), "y": i % 2} for i in range(9)]))
    assert summary("stream", path)["views"] == "a (2 columns, impute, standardize), ids (objects, hash)"
    rng = np.random.default_rng(0)
    rows = [{"a__x": rng.normal(), "y": i % 2} for i in range(200)]
    for row in rows[100:]:  # which come after the first rows of a pipe
        row["b__x"] = 2e6 + 10 * row["y"] + rng.normal()
    late = summary("stream", "-", text=lines(rows))
    assert late["views"] == "a (1 column, impute, standardize), b (1 column, impute, standardize)"
    assert late["error"] < 0.4


def test_what_does_not_fit_is_refused(data, tmp_path):
    numbers = tmp_path / "n.jsonl"
    numbers.write_text(lines([{"a": [0.5, i], "y": i + 0.5} for i in range(9)]))
    assert "Use --task regression" in refused("stream", numbers)
    assert summary("stream", numbers, "--task", "regression")["samples"] == 9
    assert "OrthogonalPerceptron is not for regression" in refused(
        "stream", data, "--task", "regression", "-e", "OrthogonalPerceptron"
    )
    assert "A measure is one of" in refused("stream", data, "--measures", "f2")
    assert "is not for classification" in refused("stream", data, "--measures", "mae")
    assert "on_error='skip' (--on-error skip)" in refused("stream", data, "--quarantine", tmp_path / "q.jsonl")
    assert "is an input and would be overwritten" in refused("stream", data, "--log", data)
