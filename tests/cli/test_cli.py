"""The commands: from three Parquet files to a leaderboard, models, streams, reports and other outputs."""

import csv
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from commands import ended, predicted, refused, run, summary
from joblib import parallel_config
from sklearn.base import ClassifierMixin

import consilience as cs
from consilience.evaluation.comparison import candidates, compare
from consilience.io import read_samples

N = 90
X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
X, y = X[:N], np.array(["malignant", "benign"])[y[:N]]
FOLDS = ("--cv", 2, "-j", 1)
posix = pytest.mark.skipif(os.name == "nt", reason="signals, devices, pipes and permissions are those of POSIX")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three Parquet files, a view each, rows in different orders, the third without a third of them."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    for k, view in enumerate(X.names):
        frame = pd.DataFrame(X[view], columns=[f"c{j}" for j in range(10)])
        frame.insert(0, "sample", [f"s{i:03d}" for i in range(N)])
        if k == 0:
            frame["diagnosis"] = y
        frame.iloc[rng.permutation(N)[: 60 if k == 2 else N]].to_parquet(folder / f"{view}.parquet")
    return [folder / f"{view}.parquet" for view in X.names]


def many_columns():
    """Two views, and columns for targets and groups."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{view}__{j}": rng.normal(size=60) for view in "ab" for j in range(2)})
    frame["price"] = frame["a__0"] - frame["b__1"] + 0.1 * rng.normal(size=60)
    frame["age"] = np.round(20 * frame["price"] + 300).astype(int)
    frame["count"] = np.arange(60) % 3 + (frame["a__0"] > 0)
    frame["patient"] = [f"{i // 4:03d}" for i in range(60)]
    frame["kind"] = [None if i % 10 == 0 else "dear" if frame["price"][i] > 0 else "cheap" for i in range(60)]
    return frame


TABLE = many_columns()


def table_of(path, *columns, rows=60):
    """Write the two views and some more columns of the table."""
    frame = TABLE[["a__0", "a__1", "b__0", "b__1", *columns]][:rows]
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.fixture
def people(tmp_path):
    """A table of one view and its model."""
    height, weight = np.random.default_rng(0).normal([170, 70], 10, size=(40, 2)).T
    frame = pd.DataFrame({"height": height, "weight": weight, "y": np.where(height > 170, "tall", "short")})
    data, model = tmp_path / "people.csv", tmp_path / "m.cons"
    frame.to_csv(data, index=False)
    run("fit", data, "-y", "y", "-e", "MaxMarginClassifier", "--no-scale", "--save", model)
    return data, model


# -- compare, fit, predict, evaluate, inspect
def test_from_three_files_to_a_leaderboard_with_one_command(files):
    given = ("compare", *files, "--id", "sample", "-y", "diagnosis", "--cv", 2)
    board = summary(*given, "-j", 1)
    assert (board["views"], board["samples"]) == (list(X.names), N)
    rows = board["leaderboard"]
    scores = [row["score"] for row in rows if row["samples"] == N]  # a view that some samples lack is scored on others
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.9
    assert all(row["low"] <= row["score"] <= row["high"] <= 1 for row in rows)
    assert {"CoRegularizedRidgeClassifierCV", "LateFusion", "mean alone"} <= {row["estimator"] for row in rows}
    with parallel_config(backend="threading"):  # all cores by default
        table = run(*given, "-e", "LateFusion").stdout
    assert "LateFusion" in table
    assert "accuracy on 90 held-out samples" in table


def test_files_of_one_view_each_are_matched_by_names(files):
    samples = read_samples(files, target="diagnosis", ids="sample")
    rows = np.array([int(name[1:]) for name in samples.X.sample_names])
    assert sorted(rows) == list(range(N))
    assert samples.y.tolist() == y[rows].tolist()
    assert samples.X.mask.sum(axis=0).tolist() == [N, N, 60]
    for view in X.names:
        there = samples.X.present(view)
        np.testing.assert_allclose(samples.X[view][there], X[view][rows[there]])


def test_fit_predict_evaluate_inspect(files, tmp_path):
    model, out, given = tmp_path / "model.cons", tmp_path / "predictions.csv", ("--id", "sample")
    fitted = summary("fit", *files, *given, "-y", "diagnosis", "-e", "co-regularized-ridge-classifier", "--set",
                     "alpha=0.001", "--set", "agreement_penalty=1e-3", "--save", model)  # fmt: skip
    assert (fitted["parameters"]["alpha"], fitted["samples"]) == (0.001, N)
    run("predict", model, *files, *given, "--out", out)
    predictions = pd.read_csv(out, index_col="sample").prediction
    samples = read_samples(files, target="diagnosis", ids="sample")
    assert sorted(predictions.index) == sorted(samples.X.sample_names)
    score = summary("evaluate", model, *files, *given, "-y", "diagnosis")
    assert score["accuracy"] == pytest.approx(np.mean(predictions[samples.X.sample_names] == samples.y))
    assert len(predicted(model, files[0], *given)) == N
    inspected = summary("inspect", model)
    assert inspected["view names"] == list(X.names)
    assert "optimum" in inspected["certificate"]
    assert "CoRegularizedRidgeClassifier" in run("inspect", model).stdout
    new = shutil.copy(files[0], tmp_path / "new.parquet")  # whose columns all three views have
    sentence = refused("predict", model, new, *given)
    assert "Column 'c0' of 'new.parquet' may be of the view 'mean' or of 'error'" in sentence


def test_targets_that_are_not_integers_are_compared_by_regression(tmp_path):
    board = summary("compare", table_of(tmp_path / "t.csv", "price"), "-y", "price", *FOLDS)
    assert board["views"] == ["a", "b"]
    names = {row["estimator"] for row in board["leaderboard"]}
    assert names >= {"CoRegularizedRidgeCV", "ViewMetricRidgeCV", "EarlyFusion"}
    assert board["leaderboard"][0]["score"] > 0.9


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
@pytest.mark.parametrize(("target", "words"), [
    ("price", "fit -e CoRegularizedRidge"), ("price", "fit -e early-fusion"), ("price", "fit -e LateFusion"),
    ("age", "fit -e CoRegularizedRidge"), ("age", "fit -e LateFusion --task regression"),
    ("price", "compare -e EarlyFusion --cv 2 -j 1"),
    ("age", "compare -e coregularized-ridge-cv --task regression --cv 2 -j 1"),
])  # fmt: skip
def test_models_for_regression(target, words, tmp_path):
    data, model = table_of(tmp_path / "t.parquet", target), tmp_path / "m.cons"
    run(*words.split(), data, "-y", target, "--save", model)
    assert summary("evaluate", model, data, "-y", target)["R2"] > (0.6 if "LateFusion" in words else 0.8)
    assert cs.load(model).predict(read_samples([data], target=target).X).shape == (60,)
    table_of(tmp_path / "one.csv", target, rows=1)
    assert summary("evaluate", model, tmp_path / "one.csv", "-y", target)["R2"] is None  # not NaN, which JSON lacks


@pytest.mark.parametrize(("words", "task", "scoring"), [
    ("-e online-perceptron", "classification", "accuracy"),
    ("-e online-perceptron --scoring f1_macro", "classification", "f1_macro"),
    ("-e EarlyFusion --task regression", "regression", "r2"),
    ("-e EarlyFusion --task regression --scoring neg_mean_absolute_error", "regression", "neg_mean_absolute_error"),
])  # fmt: skip
def test_task_scoring_and_groups_of_a_comparison(words, task, scoring, tmp_path):
    data = table_of(tmp_path / "t.csv", "count", "patient")
    samples = read_samples([data], target="count", groups="patient")
    assert samples.X.names == ("a", "b")
    assert samples.groups.tolist() == TABLE["patient"].tolist()  # with their zeros
    found = summary("compare", data, "-y", "count", "--groups", "patient", *FOLDS, *words.split())
    assert (found["task"], found["scoring"]) == (task, scoring)
    options = {"task": task, "scoring": scoring, "groups": samples.groups, "cv": 2, "baselines": False}
    board = compare(samples.X, samples.y, estimators=[found["leaderboard"][0]["estimator"]], **options)
    assert found["leaderboard"][0]["score"] == pytest.approx(board[0].score)


def test_samples_without_a_target_are_left_out(tmp_path):
    data = [table_of(tmp_path / name, "kind") for name in ("t.csv", "t.parquet")]
    model = tmp_path / "m.cons"
    given = ("compare", "-y", "kind", "-e", "onlineperceptron", *FOLDS)
    for file in data:
        found = summary(*given, file, "--save", model)
        assert (found["samples"], found["left out"]) == (54, 6)
        found = summary("evaluate", model, file, "-y", "kind")
        assert (found["samples"], found["left out"]) == (54, 6)
        assert summary("stream", file, "-y", "kind")["samples"] == 54
    assert "6 samples without a target are left out: 0, 10, 20, 30, 40 and 1 more." in run(*given, data[0]).stderr


def test_the_demo(tmp_path, monkeypatch):
    few = ["OnlinePerceptron", "ViewMetricRidgeClassifierCV"]  # `make demo` runs all of them, and the baselines

    def quick(Z, labels, **given):
        return compare(Z, labels, **{**given, "estimators": few, "cv": 2, "baselines": False})

    def some(load):
        return lambda **given: tuple(part[:350] for part in load(**given))

    monkeypatch.setattr("consilience.cli.demo.compare", quick)
    for name in ("load_breast_cancer_views", "load_digits_views"):
        monkeypatch.setattr(f"consilience.cli.demo.{name}", some(getattr(cs.datasets, name)))
    report = tmp_path / "demo.html"
    shown = run("demo", "--report", report, "--jobs", 1).stdout
    assert shown.rstrip().endswith(f"Report: {report}")
    for words in ("Breast cancer", "a third of the views missing", "Digits", *few,
                  "150 samples, each predicted, then learned", "mistakes in 150 samples"):  # fmt: skip
        assert words in shown
    assert report.read_text().count(">Leaderboard</h3>") == 3


def test_lists_of_what_there_is():
    estimators = summary("estimators")["estimators"]
    assert {row["name"] for row in estimators} >= {"MaxMarginClassifier", "OrthogonalPerceptron", "ViewMetricRidge"}
    assert {row["task"] for row in estimators} == {"classification", "regression", "online", "both"}
    assert all(len(row["description"]) > 10 for row in estimators)
    assert {row["name"] for row in summary("kernels")["kernels"]} >= {"RBF", "Spectrum", "SubsetTree"}
    assert "MaxMarginClassifier" in run("estimators").stdout


def test_every_classifier_is_compared():
    known = set(candidates(X, y))
    skipped = {
        "CoRegularizedRidgeClassifier",  # this and the next: the forms that choose penalties take part
        "ViewMetricRidgeClassifier",
        "OutputKernelRidgeClassifier",  # for outputs that are related, as regression's
        "VectorValuedClassifier",  # its special cases take part
        "RankingPerceptron",  # without features or candidates it is the OnlinePerceptron
    }
    for name in set(cs.__all__) - skipped:
        cls = getattr(cs, name)
        assert name in known or not (isinstance(cls, type) and issubclass(cls, ClassifierMixin))


# -- streams
def test_the_same_stream_from_every_kind_of_file_and_standard_input(tmp_path):
    frame = pd.DataFrame({f"{v}__{j}": X[v][:, j] for v in X.names for j in range(10)} | {"y": y})
    frame.iloc[5:9, :10] = np.nan  # the first view is missing there
    frame.loc[:50, [f"worst__{j}" for j in range(10)]] = np.nan  # a view that comes late
    frame.loc[::9, "y"] = None
    for kind, separator in {"csv": ",", "tsv": "\t"}.items():
        frame.to_csv(tmp_path / f"s.{kind}", index=False, sep=separator)
    frame.to_parquet(tmp_path / "s.parquet")
    rows = [{k: None if v != v else v for k, v in row.items()} for row in frame.to_dict("records")]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    views = cs.Views({v: frame[[f"{v}__{j}" for j in range(10)]].to_numpy() for v in X.names})
    expected = cs.progressive_validation(cs.OrthogonalPerceptron(p=3), views, frame["y"].to_numpy(object))
    assert expected.n_samples == N - 10
    for kind in ("csv", "tsv", "parquet", "jsonl"):
        path = tmp_path / f"s.{kind}"
        given = ("-e", "OrthogonalPerceptron", "--set", "p=3", "--no-scale")
        found = [summary("stream", path, *given)]
        if kind != "parquet":
            found += [summary("stream", "-", "--format", kind, *given, text=path.read_text())]
        for each in found:
            assert (each["samples"], each["mistakes"]) == (expected.n_samples, expected.n_mistakes)
        for chunk in (40, 4096):
            model = cs.OrthogonalPerceptron(p=3)
            result = cs.progressive_validation(model, path, chunk=chunk)
            np.testing.assert_array_equal(result.curve, expected.curve)
            assert model.classes_.tolist() == ["benign", "malignant"]
    assert ended("stream", "-", "--format", "xml")[0] == 2


def test_streams_are_saved_and_resumed_and_have_reports(tmp_path):
    data, check, model, report = (tmp_path / name for name in ("s.jsonl", "c.cons", "m.cons", "r.html"))
    rows = [{**{v: X[v][i].tolist() for v in X.names}, "y": str(y[i])} for i in range(N)]
    data.write_text("\n".join(map(json.dumps, rows)))
    given = ("stream", data, "-e", "KernelPerceptron", "--checkpoint", check)
    first = summary(*given, "--save", model, "--report", report)
    assert first["report"] == str(report)
    assert f"mistakes in {N} samples, at most" in report.read_text()
    assert summary("inspect", check)["checkpoint after"] == N
    assert summary(*given, "--resume")["mistakes"] == cs.load(model).n_mistakes_ == first["mistakes"]
    prepare = {name: ["impute", "standardize"] for name in X.names}  # unless --no-scale
    expected = cs.progressive_validation(cs.KernelPerceptron(prepare=prepare), X, y)
    assert (first["samples"], first["mistakes"]) == (N, expected.n_mistakes)


@posix
def test_control_c_leaves_a_checkpoint(tmp_path):
    check = tmp_path / "c.cons"
    words = [sys.executable, "-m", "consilience.cli.main", "stream", "-", "--checkpoint", str(check), "--every", "64"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for i in range(128):
        process.stdin.write(json.dumps({"a": [float(i % 7), 1.0], "y": i % 2}) + "\n")
    process.stdin.flush()
    for _ in range(600):
        if check.exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Saved to" in err
    assert summary("inspect", check)["checkpoint after"] % 64 == 0


# -- outputs
def test_reports_of_comparisons(files, tmp_path):
    report, model = tmp_path / "r.html", tmp_path / "m.cons"
    shown = run("compare", *files, "--id", "sample", "-y", "diagnosis", *FOLDS, "-e", "LateFusion", "-e", "mean alone",
                "--report", report, "--save", model).stdout  # fmt: skip
    assert str(report) in shown
    assert str(model) in shown
    text = report.read_text()
    assert "diagnosis from mean, error, worst" in text
    assert "Views that are present together" in text
    assert re.search(r"<td>s\d{3}</td>", text)  # samples by their names
    read = read_samples(files, target="diagnosis", ids="sample").X
    assert cs.load(model).predict(read).shape == (N,)


@posix
def test_outputs_go_to_devices_pipes_and_links(people, tmp_path):
    (data, model), pipe, got = people, tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    run("predict", model, data, "--out", pipe)
    reader.join(30)
    assert len(got[0].splitlines()) == 41
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "link.cons").symlink_to("away.cons")
    run("fit", data, "-y", "y", "-e", "LateFusion", "--save", tmp_path / "link.cons")
    assert (tmp_path / "link.cons").is_symlink()
    assert cs.load(tmp_path / "away.cons").predict(read_samples([data], target="y").X).shape == (40,)
    model.chmod(0o600)
    run("fit", data, "-y", "y", "-e", "LateFusion", "--save", model)
    assert stat.S_IMODE(model.stat().st_mode) == 0o600
    with open(tmp_path / "printed.csv", "w") as file:
        words = [sys.executable, "-m", "consilience.cli.main", "predict", model, data, "--out", "/dev/stdout"]
        assert subprocess.run(words, stdout=file).returncode == 0
    assert len(pd.read_csv(tmp_path / "printed.csv")) == 40  # the predictions and nothing else


def test_places_are_checked_before_the_work(people, tmp_path, monkeypatch):
    (data, model), new = people, tmp_path / "x"
    fit = ("fit", data, "-y", "y", "-e", "LateFusion", "--save")
    overwritten = "is an input and would be overwritten. Name another file to write."
    assert refused(*fit, data) == f"'{data}' {overwritten}"
    assert refused("predict", model, data, "--out", model) == f"'{model}' {overwritten}"
    assert refused(*fit, tmp_path) == f"'{tmp_path}' is a folder. Name a file to write."
    assert "are the same file; each output needs its own." in refused(
        "stream", data, "--save", new, "--checkpoint", tmp_path / "." / "x"
    )
    assert ended("stream", data, "--save", os.devnull, "--report", os.devnull)[0] == 0
    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)
    for words in ((*fit, new), ("demo", "--report", new), ("stream", data, "--checkpoint", "x"),
                  ("predict", model, data, "--out", new)):  # fmt: skip
        sentence = r"The folder '.*' is read-only for you. Name a file in another folder."
        assert re.fullmatch(sentence, refused(*words))


def test_names_and_classes_are_written_as_they_are_read(tmp_path):
    names = ["=1+1", "-P001", "+7", "7", "001", "1.10", "1.1", "2e3", "2000", "a,b", 'q"', "\tx"]
    frame = pd.DataFrame({"=id": names, "n__1": range(12), "y": ["=cmd", "1.10", "1.1"] * 4})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m.cons", tmp_path / "out.csv"
    run("fit", tmp_path / "t.csv", "--id", "=id", "-y", "y", "-e", "KernelPerceptron", "--save", model)
    run("predict", model, tmp_path / "t.csv", "--id", "=id", "--out", out)
    with out.open(newline="") as file:
        heads, *rows = csv.reader(file)
    assert heads == ["=id", "prediction"]
    assert [row[0] for row in rows] == names
    assert {row[1] for row in rows} <= {"=cmd", "1.10", "1.1"}


@pytest.mark.parametrize("word", ["--\u2029", "--\u2066isolate", "--\U000e0041tag", "--\x1b[2Jclear"])
def test_words_that_are_not_understood_are_printed_without_control_characters(word):
    code, told = ended("fit", word)
    assert code == 2
    assert word.encode("unicode_escape").decode() in told
    assert not any(sign in told for sign in "\u2029\u2066\U000e0041\x1b")


def test_an_error_that_follows_ctrl_c_is_not_one_of_the_data(monkeypatch):
    """As where an archive is closed before the file in it."""

    def stopped(*given, **more):
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("Can't close the file.")

    monkeypatch.setattr("consilience.cli.main.app", stopped)
    assert ended("estimators") == (130, "Stopped.\n")


def test_ctrl_c_while_an_object_is_deleted_stops_the_work(monkeypatch):
    class Deleted:
        def __del__(self):
            raise KeyboardInterrupt

    def work(*given, **more):
        del (own := {"a": Deleted()})["a"]
        for _ in range(1000):
            own[""] = time.sleep(0.001)
        raise AssertionError("the work went on")

    monkeypatch.setattr("consilience.cli.main.app", work)
    assert ended("estimators") == (130, "Stopped.\n")
