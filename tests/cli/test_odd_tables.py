"""The command line on odd files: column names, gaps, empty targets, layouts, booleans, dates, mistakes."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import consilience as cs

pytest.importorskip("typer", reason="typer is not installed")
from typer.testing import CliRunner

from consilience.cli.main import app

rng = np.random.default_rng(0)
A, B = rng.normal(size=(120, 3)), rng.normal(size=(120, 2))
F = A[:, 0] + np.sin(2 * B[:, 0]) + 0.3 * rng.normal(size=120)


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame({"p": A[:, 0], "q": A[:, 1], "r": B[:, 0], "y": np.where(F > 0, "up", "down")})
    frame[:80].to_csv(tmp_path / "train.csv", index=False)
    frame[80:].to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def test_models_store_their_column_names(table):
    model = table / "m.cons"
    run("fit", table / "train.csv", "-y", "y", "-e", "MaxMarginClassifier", "--save", model)
    summary = json.loads(run("evaluate", model, table / "test.csv", "-y", "y", "--json").stdout)
    assert summary["samples"] == 40
    assert summary["accuracy"] > 0.6
    assert len(json.loads(run("predict", model, table / "test.csv", "--json").stdout)["predictions"]) == 40
    wide = pd.read_csv(table / "train.csv").rename(columns={"p": "a__p", "q": "a__q", "r": "b__r"})
    wide.to_csv(table / "wide.csv", index=False)
    run("fit", table / "wide.csv", "-y", "y", "-e", "LateFusion", "--save", model)
    wide[["y", "b__r", "a__q", "a__p"]].assign(more=1.0).to_csv(table / "other.csv", index=False)
    one, two = (json.loads(run("predict", model, table / f, "--json").stdout) for f in ("wide.csv", "other.csv"))
    assert one == two
    wide[["a__p", "b__r"]].to_csv(table / "less.csv", index=False)
    with pytest.raises(ValueError, match="View 'a' has no column 'a__q', which the model was fitted on"):
        run("predict", model, table / "less.csv")
    wide[["b__r"]].to_csv(table / "one.csv", index=False)  # a whole view may be missing
    assert len(json.loads(run("predict", model, table / "one.csv", "--json").stdout)["predictions"]) == 80
    run("stream", table / "train.csv", "--save", model)
    assert json.loads(run("evaluate", model, table / "test.csv", "-y", "y", "--json").stdout)["samples"] == 40


def test_regression_from_the_command_line(table):
    frame = pd.DataFrame({"a__0": A[:, 0], "b__0": B[:, 0], "age": np.round(20 * F + 300).astype(int)})
    frame.to_parquet(table / "age.parquet")
    words = ("compare", table / "age.parquet", "-y", "age", "--task", "regression", "-j", 1, "--cv", 3)
    summary = json.loads(run(*words, "-e", "coregularized-ridge-cv", "--save", table / "m.cons", "--json").stdout)
    assert summary["scoring"] == "r2"
    assert summary["leaderboard"][0]["score"] > 0.5
    found = json.loads(run("evaluate", table / "m.cons", table / "age.parquet", "-y", "age", "--json").stdout)
    assert found["r2"] > 0.5
    run("fit", table / "age.parquet", "-y", "age", "-e", "CoRegularizedRidge", "--save", table / "m.cons")
    assert (
        json.loads(run("evaluate", table / "m.cons", table / "age.parquet", "-y", "age", "--json").stdout)["r2"] > 0.5
    )
    assert "CoRegularizedRidge" in run("inspect", table / "m.cons").stdout
    for name in ("early-fusion", "LateFusion"):
        frame.assign(age=frame.age + 0.5).to_parquet(table / "f.parquet")
        run("fit", table / "f.parquet", "-y", "age", "-e", name, "--save", table / "m.cons")


def test_empty_targets_of_csv_are_left_out(table):
    frame = pd.read_csv(table / "train.csv")
    frame.loc[::8, "y"] = None
    frame.to_csv(table / "gaps.csv", index=False)
    summary = json.loads(
        run("compare", table / "gaps.csv", "-y", "y", "-e", "latefusion", "--cv", 2, "-j", 1, "--json").stdout
    )
    assert (summary["samples"], summary["left out"]) == (70, 10)
    assert json.loads(run("stream", table / "gaps.csv", "--json").stdout)["samples"] == 70


def test_models_of_files_with_gaps_are_saved_and_take_gaps_later(table):
    frame = pd.read_csv(table / "train.csv")
    frame.iloc[::9, 0] = None
    frame.to_csv(table / "holes.csv", index=False)
    model, report = table / "m.cons", table / "r.html"
    for file in ("holes.csv", "train.csv"):
        run("fit", table / file, "-y", "y", "-e", "LateFusion", "--save", model)
        for other in ("holes.csv", "test.csv"):
            summary = json.loads(run("evaluate", model, table / other, "-y", "y", "--json").stdout)
            assert summary["accuracy"] > 0.5
    words = ("compare", table / "holes.csv", "-y", "y", "-e", "EarlyFusion", "--cv", 2, "-j", 1)
    assert "accuracy on held-out samples of 80" in run(*words, "--save", model, "--report", report).stdout
    assert report.exists()
    assert len(cs.load(model).predict(cs.Views(holes=frame[["p", "q", "r"]]))) == 80


def test_a_layout_may_name_target_and_names(table):
    (table / "l.toml").write_text('target = "y"\n[views]\na = ["p", "q"]\nb = "r"\n')
    summary = json.loads(
        run(
            "compare",
            table / "train.csv",
            "--views",
            table / "l.toml",
            "-e",
            "LateFusion",
            "--cv",
            2,
            "-j",
            1,
            "--json",
        ).stdout
    )
    assert summary["views"] == ["a", "b"]
    assert json.loads(run("stream", table / "train.csv", "--views", table / "l.toml", "--json").stdout)["samples"] == 80


def test_booleans_are_numbers_and_dates_are_refused_by_name(table):
    frame = pd.DataFrame({"a__flag": A[:, 0] > 0, "b__x": B[:, 0], "y": F > 0})
    frame.to_csv(table / "b.csv", index=False)
    frame.to_parquet(table / "b.parquet")
    found = [json.loads(run("stream", table / f"b.{kind}", "--json").stdout)["mistakes"] for kind in ("csv", "parquet")]
    assert found[0] == found[1]
    summary = json.loads(
        run("compare", table / "b.csv", "-y", "y", "-e", "LateFusion", "--cv", 2, "-j", 1, "--json").stdout
    )
    assert summary["views"] == ["a", "b"]
    frame.assign(a__day=pd.Timestamp("2020-01-01")).to_parquet(table / "d.parquet")
    for command in ("compare", "stream"):
        with pytest.raises(ValueError, match=r"Column 'a__day' of '.*' holds"):
            run(command, table / "d.parquet", "-y", "y")


MISTAKES = {
    "--jobs is at least 1, or -1 for all cores; got 0.": ("compare", "train.csv", "-y", "y", "-j", "0"),
    "Name the column of the class or target by --target (-y)": ("compare", "train.csv"),
    "is a folder. Name a file to write.": ("compare", "train.csv", "-y", "y", "--report", "."),
    "does not exist. Create it first.": ("fit", "train.csv", "-y", "y", "-e", "LateFusion", "--save", "no/m.cons"),
    "No sample of 'ids.csv' is in another file": ("compare", "ids.csv", "more.csv", "--id", "id", "-y", "y"),
    "The stream has no samples with a class.": ("stream", "head.csv"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_bad_commands_raise(message, table, monkeypatch):
    monkeypatch.chdir(table)
    frame = pd.read_csv("train.csv")
    frame.assign(id=range(80)).to_csv("ids.csv", index=False)
    frame[["p"]].assign(id=[f"s{i}" for i in range(80)]).to_csv("more.csv", index=False)
    (table / "head.csv").write_text("a,y\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        run(*MISTAKES[message])


def test_json_has_null_for_nan(table):
    frame = pd.DataFrame({"a__0": A[:, 0], "b__0": B[:, 0], "z": F})
    frame.to_csv(table / "z.csv", index=False)
    frame[:1].to_csv(table / "one.csv", index=False)
    run("fit", table / "z.csv", "-y", "z", "-e", "CoRegularizedRidge", "--save", table / "m.cons")
    out = run("evaluate", table / "m.cons", table / "one.csv", "-y", "z", "--json").stdout
    assert json.loads(out, parse_constant=pytest.fail)["r2"] is None
