"""The command line and what it stands on: files, comparisons; from three Parquet files to a leaderboard."""

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.datasets import dump_svmlight_file
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import consilience as cs
from consilience.evaluation.comparison import candidates, compare
from consilience.io import read_samples

typer = pytest.importorskip("typer", reason="typer is not installed")
from typer.testing import CliRunner  # noqa: E402

from consilience.cli._output import csv_lines  # noqa: E402
from consilience.cli.main import app, main  # noqa: E402

X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
X, y = X[:150], np.array(["malignant", "benign"])[y[:150]]


@pytest.fixture
def files(tmp_path):
    """Three Parquet files, a view each, rows in different orders, the third without a third of them."""
    rng = np.random.default_rng(0)
    names = np.array([f"s{i:03d}" for i in range(150)])
    for k, view in enumerate(X.names):
        frame = pd.DataFrame(X[view], columns=[f"c{j}" for j in range(10)])
        frame.insert(0, "sample", names)
        if k == 0:
            frame["diagnosis"] = y
        order = rng.permutation(150)
        frame = frame.iloc[order[: 100 if k == 2 else 150]]
        frame.to_parquet(tmp_path / f"{view}.parquet")
    return tmp_path


def run(*words, expect=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if expect == 0 and result.exception is not None:
        raise result.exception
    return result


def views_of(folder):
    return [folder / f"{view}.parquet" for view in X.names]


def test_from_three_files_to_a_leaderboard_with_one_command(files):
    out = run("compare", *views_of(files), "--id", "sample", "-y", "diagnosis", "--cv", 3, "-j", 1, "--json").stdout
    board = json.loads(out)
    assert board["views"] == list(X.names)
    assert board["samples"] == 150
    scores = [row["score"] for row in board["leaderboard"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.9
    assert all(row["low"] <= row["score"] <= row["high"] <= 1 for row in board["leaderboard"])
    assert {"CoRegularizedRidgeClassifierCV", "LateFusion", "mean alone"} <= {
        row["estimator"] for row in board["leaderboard"]
    }
    table = run("compare", *views_of(files), "--id", "sample", "-y", "diagnosis", "--cv", 3, "-e", "LateFusion").stdout
    assert "LateFusion" in table
    assert "score" in table


def test_files_of_one_view_each_are_matched_by_names(files):
    samples = read_samples(views_of(files), target="diagnosis", ids="sample")
    place = {name: k for k, name in enumerate(samples.ids.tolist())}
    back = [place[f"s{i:03d}"] for i in range(150)]
    for view in X.names[:2]:
        np.testing.assert_allclose(samples.X[view][back], X[view])
    assert samples.y[back].tolist() == y.tolist()
    assert samples.X.mask[:, 2].sum() == 100
    there = samples.X.present("worst")
    rows = [int(name[1:]) for name in samples.ids[there]]
    np.testing.assert_allclose(samples.X["worst"][there], X["worst"][rows])


def test_fit_predict_evaluate_inspect(files, tmp_path):
    model = tmp_path / "model.cons"
    given = ("--id", "sample")
    told = json.loads(
        run("fit", *views_of(files), *given, "-y", "diagnosis", "-e", "co-regularized-ridge-classifier", "--set",
            "alpha=0.001", "--set", "agreement_penalty=1e-3", "--save", model, "--json").stdout
    )  # fmt: skip
    assert told["parameters"]["alpha"] == 0.001
    assert told["samples"] == 150
    out = tmp_path / "predictions.csv"
    run("predict", model, *views_of(files), *given, "--out", out)
    frame = pd.read_csv(out)
    assert len(frame) == 150
    score = json.loads(run("evaluate", model, *views_of(files), *given, "-y", "diagnosis", "--json").stdout)
    samples = read_samples(views_of(files), target="diagnosis", ids="sample")
    right = dict(zip(samples.ids.tolist(), samples.y.tolist(), strict=True))
    expected = np.mean(
        [right[name] == prediction for name, prediction in zip(frame["sample"], frame.prediction, strict=True)]
    )
    assert score["accuracy"] == pytest.approx(expected)
    alone = json.loads(run("predict", model, files / "mean.parquet", *given, "--json").stdout)
    assert len(alone["predictions"]) == 150
    told = json.loads(run("inspect", model, "--json").stdout)
    assert told["view names"] == list(X.names)
    assert "optimum" in told["certificate"]
    assert "CoRegularizedRidgeClassifier" in run("inspect", model).stdout


def test_targets_that_are_not_integers_are_compared_by_regression(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {f"a__{j}": rng.normal(size=80) for j in range(3)} | {f"b__{j}": rng.normal(size=80) for j in range(2)}
    )
    frame["price"] = frame["a__0"] - frame["b__1"] + 0.1 * rng.normal(size=80)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    board = json.loads(run("compare", tmp_path / "wide.csv", "-y", "price", "--cv", 3, "--json").stdout)
    assert board["views"] == ["a", "b"]
    assert {row["estimator"] for row in board["leaderboard"]} >= {
        "CoRegularizedRidgeCV",
        "ViewMetricRidgeCV",
        "EarlyFusion",
    }
    assert board["leaderboard"][0]["score"] > 0.9
    model = tmp_path / "m.cons"
    run("fit", tmp_path / "wide.csv", "-y", "price", "-e", "CoRegularizedRidge", "--save", model)
    assert json.loads(run("evaluate", model, tmp_path / "wide.csv", "-y", "price", "--json").stdout)["r2"] > 0.8
    best = tmp_path / "best.cons"
    run("compare", tmp_path / "wide.csv", "-y", "price", "--cv", 2, "-e", "EarlyFusion", "--save", best)
    assert cs.load(best).predict(read_samples([tmp_path / "wide.csv"], target="price").X).shape == (80,)


def test_task_scoring_and_groups_of_a_comparison(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{view}__{j}": rng.normal(size=60) for view in "ab" for j in range(2)})
    frame["count"] = np.arange(60) % 3 + (frame["a__0"] > 0)
    frame["patient"] = [f"{i // 4:03d}" for i in range(60)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = (tmp_path / "t.csv", "-y", "count", "-e", "late-fusion", "--cv", 3, "-j", 1, "--json")
    apart = read_samples([tmp_path / "t.csv"], target="count", groups="patient")
    assert apart.X.names == ("a", "b")
    assert apart.groups.tolist() == frame["patient"].tolist()  # with their zeros
    for words, task, scoring in (
        ((), "classification", "accuracy"),
        (("--task", "regression"), "regression", "r2"),
        (("--task", "regression", "--scoring", "neg_mean_absolute_error"), "regression", "neg_mean_absolute_error"),
        (("--scoring", "f1_macro"), "classification", "f1_macro"),
    ):
        found = json.loads(run("compare", *given, "--groups", "patient", *words).stdout)
        assert (found["task"], found["scoring"]) == (task, scoring)
        board = compare(
            apart.X, apart.y, task=task, scoring=scoring, groups=apart.groups, cv=3, estimators=["LateFusion"]
        )
        assert found["leaderboard"][0]["score"] == pytest.approx(board[0].score)
    run("fit", *given[:3], "-e", "LateFusion", "--task", "regression", "--save", tmp_path / "m.cons")
    assert "r2" in json.loads(run("evaluate", tmp_path / "m.cons", *given[:3], "--json").stdout)
    assert ended("compare", *given, "--task", "numbers")[0] == 2
    code, said = ended("compare", *given, "--groups", "doctor")
    assert code == 1
    assert said.startswith("Error: No column 'doctor' is in 't.csv', only a__0, a__1, b__0, b__1, patient.")
    frame.assign(patient=[None, *frame["patient"][1:]]).to_csv(tmp_path / "t.csv", index=False)
    assert "1 samples have no group. Complete the column of --groups." in ended(
        "compare", *given, "--groups", "patient"
    )[1]  # fmt: skip
    assert ended("fit", given[0], "-e", "LateFusion", "--save", tmp_path / "m.cons") == (
        1, "Error: Name the column of the class or target by --target (-y), or in the TOML file.\n",
    )  # fmt: skip


def test_layouts(tmp_path):
    frame = pd.DataFrame(
        {"m1": [1.0, 2.0], "m2": [3.0, 4.0], "t": ["x", "y"], "k": [5.0, None], "y": [0, 1], "id": ["a", "b"]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "v.toml").write_text('target = "y"\nid = "id"\n[views]\nsound = ["m*"]\ntext = "t"\nlast = ["k"]\n')
    samples = read_samples([tmp_path / "t.parquet"], views=tmp_path / "v.toml")
    assert samples.X.names == ("sound", "text", "last")
    assert samples.X.mask.tolist() == [[True, True, True], [True, True, False]]
    assert samples.y.tolist() == [0, 1]
    assert samples.ids.tolist() == ["a", "b"]
    np.savez(tmp_path / "n.npz", a=np.ones((3, 2)), b=np.zeros((3, 4)), y=[0, 1, 0])
    arrays = read_samples([tmp_path / "n.npz"], target="y")
    assert arrays.X.names == ("a", "b")
    Z = sp.csr_array(np.random.default_rng(0).integers(3, size=(6, 5)).astype(float))
    dump_svmlight_file(Z, [0, 1] * 3, str(tmp_path / "s.libsvm"), zero_based=False)
    sparse = read_samples([tmp_path / "s.libsvm"])
    assert sparse.X.kind("s") == "sparse"
    assert sparse.y.tolist() == [0, 1] * 3
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    pq.write_table(pa.table({"emb": [[1.0, 2.0], None], "n": [1.0, 2.0], "y": [1, 2]}), tmp_path / "lists.parquet")
    lists = read_samples([tmp_path / "lists.parquet"], target="y")
    assert lists.X.names == ("emb", "lists")
    assert lists.X.present("emb").tolist() == [True, False]


def test_streams_from_files_and_standard_input(tmp_path):
    lines = "\n".join(json.dumps({**{v: X[v][i].tolist() for v in X.names}, "y": str(y[i])}) for i in range(150))
    (tmp_path / "s.jsonl").write_text(lines)
    expected = cs.progressive_validation(cs.OrthogonalPerceptron(p=3), X, y)
    told = json.loads(run("stream", tmp_path / "s.jsonl", "--set", "p=3", "--json").stdout)
    assert (told["samples"], told["mistakes"]) == (150, expected.n_mistakes)
    piped = CliRunner().invoke(app, ["stream", "-", "--set", "p=3", "--json"], input=lines)
    assert json.loads(piped.stdout)["mistakes"] == expected.n_mistakes
    check, model = tmp_path / "c.cons", tmp_path / "m.cons"
    run("stream", tmp_path / "s.jsonl", "--set", "p=3", "--checkpoint", check, "--save", model)
    assert json.loads(run("inspect", check, "--json").stdout)["checkpoint after"] == 150
    again = json.loads(
        run("stream", tmp_path / "s.jsonl", "--set", "p=3", "--checkpoint", check, "--resume", "--json").stdout
    )
    assert again["mistakes"] == expected.n_mistakes
    assert cs.load(model).n_mistakes_ == expected.n_mistakes


def test_streams_from_csv(tmp_path):
    frame = pd.DataFrame({f"{v}__{j}": X[v][:, j] for v in X.names for j in range(10)} | {"y": y})
    frame.iloc[5:9, :10] = np.nan  # the first view is missing there
    views = cs.Views({v: frame[[f"{v}__{j}" for j in range(10)]].to_numpy() for v in X.names})
    expected = cs.progressive_validation(cs.OrthogonalPerceptron(p=3), views, y)
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.to_csv(tmp_path / "s.tsv", index=False, sep="\t")
    for name in ("s.csv", "s.tsv"):
        told = json.loads(run("stream", tmp_path / name, "--set", "p=3", "--json").stdout)
        assert (told["samples"], told["mistakes"]) == (150, expected.n_mistakes)
    text = (tmp_path / "s.csv").read_text()
    piped = CliRunner().invoke(app, ["stream", "-", "--format", "csv", "--set", "p=3", "--json"], input=text)
    assert json.loads(piped.stdout)["mistakes"] == expected.n_mistakes
    odd = CliRunner().invoke(app, ["stream", "-", "--format", "xml", "--json"], input=text)
    assert odd.exit_code == 2


def test_the_same_stream_from_every_kind_of_file(tmp_path):
    frame = pd.DataFrame({f"{v}__{j}": X[v][:, j] for v in X.names for j in range(10)} | {"y": y})
    frame.loc[:80, [f"worst__{j}" for j in range(10)]] = np.nan  # a view that comes late
    frame.loc[::9, "y"] = None
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.to_parquet(tmp_path / "s.parquet")
    rows = [{k: None if v != v else v for k, v in row.items()} for row in frame.to_dict("records")]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = {}
    for kind in ("csv", "parquet", "jsonl"):
        for chunk in (40, 4096):
            model = cs.OrthogonalPerceptron()
            result = cs.progressive_validation(model, tmp_path / f"s.{kind}", chunk=chunk)
            found[kind, chunk] = (result.n_samples, result.n_mistakes, model.classes_.tolist())
    assert len(set(map(str, found.values()))) == 1
    assert found["csv", 40][0] == 150 - 17


def test_reports_from_the_command_line(files):
    report, model = files / "r.html", files / "m.cons"
    told = run("compare", *views_of(files), "--id", "sample", "-y", "diagnosis", "--cv", 2, "-e", "LateFusion", "-e",
               "mean alone", "--jobs", 1, "--report", report, "--save", model)  # fmt: skip
    assert str(report) in told.stdout
    assert str(model) in told.stdout
    text = report.read_text()
    assert "diagnosis from mean, error, worst" in text
    assert "Views that are present together" in text
    assert re.search(r"<td>s\d{3}</td>", text)  # samples by their names
    read = read_samples(views_of(files), target="diagnosis", ids="sample").X
    assert cs.load(model).predict(read).shape == (150,)
    lines = "\n".join(json.dumps({**{v: X[v][i].tolist() for v in X.names}, "y": str(y[i])}) for i in range(150))
    (files / "s.jsonl").write_text(lines)
    told = run("stream", files / "s.jsonl", "-e", "KernelPerceptron", "--report", report, "--json").stdout
    assert json.loads(told)["report"] == str(report)
    assert "mistakes in 150 samples, at most" in report.read_text()
    nowhere = CliRunner().invoke(app, ["stream", str(files / "s.jsonl"), "--report", str(files / "no" / "r.html")])
    assert "does not exist. Create it first." in str(nowhere.exception)


def test_samples_without_a_target_are_left_out_of_scores(files, tmp_path):
    frame = pd.DataFrame({f"a__{j}": X["mean"][:, j] for j in range(10)} | {"b__0": X["worst"][:, 0]})
    frame["kind"] = [None if i % 10 == 0 else y[i] for i in range(150)]
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="")
    pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    result = run("compare", tmp_path / "t.parquet", "-y", "kind", "-e", "LateFusion", "--cv", 2, "--jobs", 1)
    assert "15 samples without a target are left out." in result.stderr
    model = tmp_path / "m.cons"
    run("compare", tmp_path / "t.parquet", "-y", "kind", "-e", "LateFusion", "--cv", 2, "--jobs", 1, "--save", model)
    told = json.loads(run("evaluate", model, tmp_path / "t.parquet", "-y", "kind", "--json").stdout)
    assert (told["samples"], told["left out"]) == (135, 15)


def test_the_demo(tmp_path, monkeypatch):
    few = ["OnlinePerceptron", "ViewMetricRidgeClassifierCV"]  # all of them are run by `make demo`

    def quick(Z, labels, **given):
        return compare(Z, labels, **{**given, "estimators": few, "cv": 2})

    monkeypatch.setattr("consilience.cli.demo.compare", quick)
    report = tmp_path / "demo.html"
    shown = run("demo", "--report", report, "--jobs", 1).stdout
    assert shown.rstrip().endswith(f"Report: {report}")
    for words in ("Breast cancer", "a third of the views missing", "Digits", *few,
                  "1,597 samples, each predicted, then learned", "mistakes in 1597 samples"):  # fmt: skip
        assert words in shown
    assert report.read_text().count("<h3>Leaderboard</h3>") == 3


def test_lists_of_what_there_is():
    estimators = json.loads(run("estimators", "--json").stdout)["estimators"]
    assert {row["name"] for row in estimators} >= {"MaxMarginClassifier", "OrthogonalPerceptron", "ViewMetricRidge"}
    assert {row["task"] for row in estimators} == {"classification", "regression", "online", "both"}
    assert all(len(row["description"]) > 10 for row in estimators)
    kernels = json.loads(run("kernels", "--json").stdout)["kernels"]
    assert {row["name"] for row in kernels} >= {"RBF", "Spectrum", "SubsetTree"}
    assert "MaxMarginClassifier" in run("estimators").stdout


def shell(*words, **given):
    return subprocess.run(
        [sys.executable, "-m", "consilience.cli.main", *map(str, words)], capture_output=True, text=True, **given
    )


def ended(*words):
    """The exit code of a command, and what it wrote to standard error, without a new process."""
    before, said = sys.argv, io.StringIO()
    sys.argv = ["consilience", *map(str, words)]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        return end.code or 0, said.getvalue()
    finally:
        sys.argv = before
    raise AssertionError("a command ends by an exit code")


def test_errors_are_one_sentence_and_nothing_is_written(files):
    done = shell("fit", files / "mean.parquet", "-y", "none", "-e", "LateFusion", "--save", files / "m.cons")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: No column 'none' is in 'mean.parquet', only sample, c0")
    assert "Traceback" not in done.stderr
    assert not (files / "m.cons").exists()
    traced = shell(
        "--debug", "fit", files / "mean.parquet", "-y", "none", "-e", "LateFusion", "--save", files / "m.cons"
    )
    assert "Traceback" in traced.stderr
    assert shell("fit").returncode == 2
    damaged = files / "bad.cons"
    damaged.write_bytes(b"not a model")
    assert "is not a model file of consilience" in shell("inspect", damaged).stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
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
    assert json.loads(run("inspect", check, "--json").stdout)["checkpoint after"] % 64 == 0


ERRORS = {
    "There is no estimator 'Foo'. `consilience estimators` lists them.": (
        "fit", "mean.parquet", "-y", "diagnosis", "-e", "Foo", "--save", "m",
    ),
    "--set takes name=value; got 'alpha'.": (
        "fit", "mean.parquet", "-y", "diagnosis", "-e", "CoRegularizedSVC", "--set", "alpha", "--save", "m",
    ),
    "Several files are matched by a column that names the samples": (
        "compare", "mean.parquet", "error.parquet", "-y", "diagnosis",
    ),
    "has no column 'who'": ("compare", "mean.parquet", "error.parquet", "-y", "diagnosis", "--id", "who"),
    "There is no file or folder": ("compare", "none.parquet", "-y", "diagnosis"),
    "`views` is a dict of view -> columns, 'prefix', a .toml file or None": (
        "compare", "mean.parquet", "-y", "diagnosis", "--views", "odd",
    ),
    "Column 'c0' has no view prefix. With views='prefix', columns of the view audio are named 'audio__something'.": (
        "compare", "mean.parquet", "-y", "diagnosis", "--id", "sample", "--views", "prefix",
    ),
    "`estimators` must name candidates for these data; got 'Foo'.": (
        "compare", "mean.parquet", "-y", "diagnosis", "--id", "sample", "-e", "Foo",
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_bad_commands_get_a_sentence(message, files):
    words = [str(files / word) if word.endswith(".parquet") else word for word in ERRORS[message]]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert message in str(result.exception)


def test_every_classifier_is_compared():
    known = set(candidates(X, y))
    skipped = {
        "CoRegularizedRidgeClassifier",
        "ViewMetricRidgeClassifier",
    }  # theirs are the forms that choose penalties
    for name in cs.__all__:
        cls = getattr(cs, name)
        if isinstance(cls, type) and name not in skipped and issubclass(cls, ClassifierMixin):
            assert name in known


@pytest.mark.filterwarnings("ignore")
def test_annotated_matrices_and_their_modalities(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    mudata = pytest.importorskip("mudata", reason="mudata is not installed")
    rng = np.random.default_rng(0)
    obs = pd.DataFrame({"kind": ["t", "b", "t", "b"], "depth": [1.0, 2.0, 3.0, 4.0]}, index=["c1", "c2", "c3", "c4"])
    rna = anndata.AnnData(X=rng.random((4, 3)).astype(np.float32), obs=obs)
    protein = anndata.AnnData(X=sp.csr_matrix(rng.random((3, 2)).astype(np.float32)), obs=obs.loc[["c3", "c1", "c4"]])
    rna.write_h5ad(tmp_path / "rna.h5ad")
    one = read_samples([tmp_path / "rna.h5ad"], target="kind", ids="obs_names")
    np.testing.assert_allclose(one.X["rna"], rna.X)
    assert one.X.names == ("rna",)  # notes on the cells are no view
    assert one.y.tolist() == ["t", "b", "t", "b"]
    both = mudata.MuData({"rna": rna, "protein": protein})
    both.obs["kind"] = obs["kind"]
    both.write(tmp_path / "cells.h5mu")
    cells = read_samples([tmp_path / "cells.h5mu"], target="kind", ids="obs_names")
    place = {name: k for k, name in enumerate(cells.ids.tolist())}
    np.testing.assert_allclose(cells.X["rna"][[place[c] for c in obs.index]], rna.X)
    np.testing.assert_allclose(cells.X["protein"][[place[c] for c in ("c3", "c1", "c4")]], protein.X.toarray())
    assert not cells.X.present("protein")[place["c2"]]


# -- outputs
@pytest.fixture
def people(tmp_path):
    """A table of one view, its model, and its predictions."""
    height, weight = np.random.default_rng(0).normal([170, 70], 10, size=(40, 2)).T
    frame = pd.DataFrame({"height": height, "weight": weight, "y": np.where(height > 170, "tall", "short")})
    frame.to_csv(tmp_path / "people.csv", index=False)
    run(
        "fit",
        tmp_path / "people.csv",
        "-y",
        "y",
        "-e",
        "MaxMarginClassifier",
        "--no-scale",
        "--save",
        tmp_path / "m.cons",
    )
    return tmp_path


def predicted(*words):
    return json.loads(run("predict", *words, "--json").stdout)["predictions"]


@pytest.mark.skipif(os.name == "nt", reason="devices, pipes and permissions are those of POSIX")
def test_outputs_go_to_devices_pipes_and_links(people, tmp_path):
    model, data, pipe, got = people / "m.cons", people / "people.csv", tmp_path / "pipe", []
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
    data, model = people / "people.csv", people / "m.cons"
    fit = ("fit", data, "-y", "y", "-e", "LateFusion", "--save")
    assert ended(*fit, data) == (
        1, f"Error: '{data}' is an input and would be overwritten. Name another file to write.\n",
    )  # fmt: skip
    assert ended("predict", model, data, "--out", model)[0] == 1
    assert ended(*fit, tmp_path) == (1, f"Error: '{tmp_path}' is a folder. Name a file to write.\n")
    code, said = ended("stream", data, "--save", tmp_path / "a", "--checkpoint", tmp_path / "." / "a")
    assert (code, "are the same file; each output needs its own." in said) == (1, True)
    assert ended("stream", data, "--save", os.devnull, "--report", os.devnull)[0] == 0
    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)
    for words in ((*fit, tmp_path / "x"), ("demo", "--report", tmp_path / "x"), ("stream", data, "--checkpoint", "x"),
                  ("predict", model, data, "--out", tmp_path / "x")):  # fmt: skip
        code, said = ended(*words)
        assert code == 1
        assert re.fullmatch(r"Error: The folder '.*' is read-only for you. Name a file in another folder.\n", said)


def test_cells_that_begin_like_formulas_get_an_apostrophe(tmp_path):
    names = ["=1+1", "-5", "+3", "-x", "@sum", "a,b", 'q"', "\tx", "plain", "'=x"]
    frame = pd.DataFrame({"=id": names * 4, "n__1": range(40), "y": ["=cmd", "-1"] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m.cons", tmp_path / "out.csv"
    run("fit", tmp_path / "t.csv", "--id", "=id", "-y", "y", "-e", "KernelPerceptron", "--save", model)
    told = run("predict", model, tmp_path / "t.csv", "--id", "=id", "--out", out, "--json")
    lines = out.read_text().splitlines()
    assert lines[0] == "'=id,prediction"
    assert [line.rsplit(",", 1)[0] for line in lines[1:11]] == [
        "'=1+1", "-5", "+3", "'-x", "'@sum", '"a,b"', '"q"""', "'\tx", "plain", "'=x",
    ]  # fmt: skip
    assert {line.rsplit(",", 1)[1] for line in lines[1:]} <= {"'=cmd", "-1"}
    count = sum(line.startswith("'") for line in lines) - 4 + sum(line.endswith(",'=cmd") for line in lines)
    assert json.loads(told.stdout)["changed cells"] == count
    assert f"{count} cells that begin like formulas got an apostrophe" in told.stderr


def test_numbers_are_cells_as_they_are():
    values = [(-1.5, -3), (float("-inf"), -1e-300), ("-1e5", "+.5"), ("-1e", "+-5"), ("-", "--")]
    text, changed = csv_lines(values)
    assert text.splitlines() == ["-1.5,-3", "-inf,-1e-300", "-1e5,+.5", "'-1e,'+-5", "'-,'--"]
    assert changed == 4


# -- what a model knows, against what files have
def test_names_of_columns_decide_also_where_there_is_one_view(people, tmp_path):
    model, frame = people / "m.cons", pd.read_csv(people / "people.csv")
    whole = predicted(model, people / "people.csv")
    frame[["y", "weight", "height"]].assign(more=1.0, text="x").to_csv(tmp_path / "other.csv", index=False)
    assert predicted(model, tmp_path / "other.csv") == whole
    frame.rename(columns={"height": "height_cm", "weight": "weight_kg"}).to_csv(tmp_path / "new.csv", index=False)
    assert ended("predict", model, tmp_path / "new.csv") == (1, (
        "Error: The model was fitted on the view 'people' with the column 'height', which 'new.csv' does not have: it "
        "has height_cm, weight_kg, y. Give the columns by the names they had at fit.\n"
    ))  # fmt: skip
    frame[["height"]].assign(weight_kg=frame["weight"]).to_csv(tmp_path / "new.csv", index=False)
    assert "View 'people' has no column 'weight'" in ended("predict", model, tmp_path / "new.csv")[1]
    (tmp_path / "v.toml").write_text('[views]\nbody = ["w*", "h*"]\n')
    assert predicted(model, people / "people.csv", "--views", tmp_path / "v.toml") == whole
    (tmp_path / "v.toml").write_text('[views]\nbody = ["w*"]\n')
    code, said = ended("predict", model, people / "people.csv", "--views", tmp_path / "v.toml")
    assert (code, "View 'people' has no column 'height'" in said) == (1, True)


def kinds_of_views(path):
    """A file whose class is in a view that has no names of columns, and noise in another."""
    y = np.array(["p", "q"] * 20)
    noise, signal = np.random.default_rng(0).normal(size=(40, 2)), np.c_[y == "p", y == "q"] * 1.0
    if path.suffix == ".npz":
        np.savez(path, noise=noise, signal=signal, y=y)
    elif path.name == "texts.csv":
        words = np.where(y == "p", "the cat sat", "dogs bark")
        pd.DataFrame({"signal": words, "n1": noise[:, 0], "n2": noise[:, 1], "y": y}).to_csv(path, index=False)
    else:
        pd.DataFrame({"signal": signal.tolist(), "n1": noise[:, 0], "n2": noise[:, 1], "y": y}).to_parquet(path)
    return path


FITS = {
    "compare": ("compare", "--cv", 2, "-j", 1, "-e", "CoRegularizedRidgeClassifierCV"),
    "fit": ("fit", "-e", "CoRegularizedRidgeClassifier"),
    "unscaled": ("fit", "--no-scale", "-e", "CoRegularizedRidgeClassifier"),
}


@pytest.mark.parametrize(("name", "how"), [
    ("texts.csv", "compare"), ("lists.parquet", "compare"), ("lists.parquet", "fit"), ("matrices.npz", "fit"),
    ("matrices.npz", "unscaled"),
])  # fmt: skip
def test_no_view_is_lost_between_fit_and_predict(name, how, tmp_path):
    path, model = kinds_of_views(tmp_path / name), tmp_path / "m.cons"
    run(*FITS[how], path, "-y", "y", "--save", model)
    done = run("evaluate", model, path, "-y", "y", "--json")
    assert json.loads(done.stdout) == {"accuracy": 1.0, "balanced accuracy": 1.0, "samples": 40}
    assert done.stderr == ""
    assert [row["prediction"] for row in predicted(model, path)] == ["p", "q"] * 20


def test_a_view_that_no_file_has_is_told(tmp_path):
    path, model = kinds_of_views(tmp_path / "matrices.npz"), tmp_path / "m.cons"
    run("fit", path, "-y", "y", "-e", "CoRegularizedRidgeClassifier", "--save", model)
    arrays = dict(np.load(path))
    np.savez(tmp_path / "less.npz", noise=arrays["noise"], y=arrays["y"])
    for words in (("predict", model, tmp_path / "less.npz"), ("evaluate", model, tmp_path / "less.npz", "-y", "y")):
        done = run(*words, "--json")
        assert json.loads(done.stdout)["missing views"] == ["signal"]
        assert done.stderr.startswith("Views of the model that are missing in every sample: 'signal'.")
        assert "missing in every sample: 'signal'" in run(*words).stderr
    done = run("predict", model, tmp_path / "less.npz", "--out", tmp_path / "out.csv", "--json")
    assert json.loads(done.stdout)["missing views"] == ["signal"]
    np.savez(tmp_path / "none.npz", other=arrays["noise"], y=arrays["y"])
    code, said = ended("predict", model, tmp_path / "none.npz")
    assert code == 1
    assert "fitted on the views 'noise', 'signal', none of which is in 'none.npz': it has y, other." in said
    np.savez(tmp_path / "wide.npz", signal=arrays["noise"][:, :1], y=arrays["y"])
    assert "View 'signal' has 1 columns in 'wide.npz', but the model was fitted on 2" in ended(
        "predict", model, tmp_path / "wide.npz"
    )[1]  # fmt: skip


def test_a_file_called_like_one_view_has_the_others_too(tmp_path):
    frame = pd.DataFrame({"a__1": [0.0, 1.0] * 20, "b__1": np.random.default_rng(0).normal(size=40), "y": [0, 1] * 20})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    frame.to_csv(tmp_path / "b.csv", index=False)
    run("fit", tmp_path / "wide.csv", "-y", "y", "-e", "LateFusion", "--save", tmp_path / "m.cons")
    done = run("evaluate", tmp_path / "m.cons", tmp_path / "b.csv", "-y", "y", "--json")
    assert json.loads(done.stdout)["accuracy"] == 1.0
    assert done.stderr == ""


def test_columns_that_several_views_have_are_not_guessed(files):
    model, given = files / "m.cons", ("--id", "sample")
    run("fit", *views_of(files), *given, "-y", "diagnosis", "-e", "LateFusion", "--save", model)
    assert len(predicted(model, files / "mean.parquet", *given)) == 150
    os.rename(files / "mean.parquet", files / "new.parquet")
    code, said = ended("predict", model, files / "new.parquet", *given)
    assert code == 1
    assert "Column 'c0' of 'new.parquet' may be of the view 'mean' or of 'error'" in said


def test_libsvm_files_are_as_wide_as_the_model(tmp_path):
    train, less, more = (tmp_path / f"{name}.libsvm" for name in ("train", "less", "more"))
    train.write_text("1 1:1 2:2 5:1\n0 1:2 3:1\n" * 20)
    less.write_text("1 1:1 2:2\n0 1:2 3:1\n" * 5)
    more.write_text("1 1:1 7:2\n0 1:2 3:1\n" * 5)
    for words in (("fit", train, "-e", "LateFusion"), ("stream", train)):
        run(*words, "--save", tmp_path / "m.cons")
        assert json.loads(run("evaluate", tmp_path / "m.cons", less, "--json").stdout)["accuracy"] == 1.0
        code, said = ended("predict", tmp_path / "m.cons", more)
        assert code == 1
        assert "has 7 columns in 'more.libsvm', but the model was fitted on 5" in said


def test_models_made_in_python_are_used_on_files(tmp_path):
    rng, y = np.random.default_rng(0), np.array([0, 1] * 20)
    Z = cs.Views(a=rng.normal(size=(40, 4)) + 3 * y[:, None], b=rng.normal(size=(40, 3)))
    frame = pd.DataFrame({f"{view}__{j}": Z[view][:, j] for view in Z.names for j in range(Z[view].shape[1])})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = make_pipeline(cs.PerView(PCA(2)), cs.LateFusion(LogisticRegression())).fit(Z, y)
    cs.save(model, tmp_path / "m.cons")  # whose learner knows pca0 and pca1, which no file has
    assert [row["prediction"] for row in predicted(tmp_path / "m.cons", tmp_path / "t.csv")] == model.predict(
        Z
    ).tolist()
    cs.save(cs.kernels.RBF(), tmp_path / "k.cons")
    code, said = ended("predict", tmp_path / "k.cons", tmp_path / "t.csv")
    assert code == 1
    assert "k.cons' holds RBF, which does not say what views it was fitted on." in said


# -- files that cannot be read
EMPTY = ["t.npz", "t.csv", "t.tsv", "t.parquet", "t.libsvm", "t.h5ad"]


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_file_is_an_error_and_not_an_interrupt(name, tmp_path):
    if name == "t.h5ad":
        pytest.importorskip("anndata", reason="anndata is not installed")
    (tmp_path / name).write_bytes(b"")
    code, said = ended("fit", tmp_path / name, "-y", "y", "-e", "LateFusion", "--save", tmp_path / "m.cons")
    assert code == 1
    assert re.match(f"Error: '{name}' (cannot be read|has no samples).*\n$", said)


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet", "t.libsvm"])
def test_an_empty_stream_is_an_error(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    code, said = ended("stream", tmp_path / name)
    assert code == 1
    assert name in said
    assert len(said.splitlines()) == 1


def test_an_end_of_file_from_anywhere_is_an_error(tmp_path, monkeypatch):
    def cut(*_, **__):
        raise EOFError("No data left in file")

    monkeypatch.setattr("consilience.io.model_files.load", cut)
    code, said = ended("inspect", tmp_path / "m.cons")
    assert (code, said.strip()) == (1, "Error: A file ends too early: No data left in file")


SMALL = {
    "'t.csv' has two columns named 'a'.": {"t.csv": b"a,a,y\n1,2,x\n3,4,z\n"},
    "'t.csv' is not encoded in UTF-8": {"t.csv": b"a,y\n1,\xe9\n2,\xfc\n"},
    "l.toml' gives the view 'a' as 5;": {"t.csv": b"a,y\n1,x\n2,z\n", "l.toml": b'target = "y"\n[views]\na = 5\n'},
}


@pytest.mark.parametrize("message", SMALL)
def test_odd_files_get_one_sentence(message, tmp_path):
    for name, content in SMALL[message].items():
        (tmp_path / name).write_bytes(content)
    layout = ["--views", tmp_path / "l.toml"] if "l.toml" in SMALL[message] else []
    code, said = ended("fit", tmp_path / "t.csv", "-y", "y", "-e", "LateFusion", "--save", tmp_path / "m", *layout)
    assert code == 1
    assert message in said
    assert len(said.splitlines()) == 1
