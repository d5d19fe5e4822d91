"""Comparisons on odd data, and what reports make of them."""

import json
import re
import tempfile

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import consilience as cs
from consilience.evaluation.comparison import (
    candidates,
    compare,
    difference_interval,
    interval,
    learner_of,
    share_interval,
)
from consilience.report import examine, write_report

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


# -- scores
@pytest.mark.parametrize(("shift", "scale"), [(120, 15), (1e7, 1e3), (0, 1e-9)])
def test_scores_of_numbers_do_not_depend_on_their_units(shift, scale):
    X = cs.Views({"a": A, "b": B})
    one, two = (compare(X, y, folds=3) for y in (F, shift + scale * F))
    scores = {row.name: row.score for row in two}
    for row in one:
        assert scores[row.name] == pytest.approx(row.score, abs=1e-3)
    found = examine(X, shift + scale * F, two)
    for row in found.disagreements:  # votes are in the units of the target
        assert all(abs(float(vote) - shift) < 100 * scale for vote in row.votes)
    assert found.alignments[0, 2] == pytest.approx(examine(X, F, one).alignments[0, 2], abs=1e-6)


def test_whole_numbers_are_classes_or_numbers_as_asked():
    y = np.round(20 * F + 50).astype(int)
    X = cs.Views({"a": A, "b": B})
    with pytest.raises(ValueError, match=r"fewer than the 5 folds.*numbers=True, --numbers"):
        compare(X, y)
    board = compare(X, y, numbers=True, learners=["CoRegularizedRidgeCV", "a alone"], folds=3)
    assert board.measure == "R2"
    row = board[0]
    for score, (_, test) in zip(row.scores, board.splits, strict=True):
        assert score == pytest.approx(r2_score(y[test], row.answers[test]))
    assert "Predicted and true" in write_report_text(examine(X, y, board))


def write_report_text(found):
    with tempfile.TemporaryDirectory() as folder:
        return write_report(f"{folder}/r.html", found).read_text()


def test_gaps_in_rows_are_filled_from_the_training_part():
    holes = A.copy()
    holes[::7, 1] = np.nan
    X, y = cs.Views({"a": holes, "b": B}), (F > 0).astype(int)
    board = compare(X, y, learners=["LateFusion", "MaxMarginClassifier"], folds=3)
    assert board[0].score > 0.6
    assert np.isfinite(examine(X, y, board).alignments).all()


def test_a_learner_that_fails_is_told_and_left_out(monkeypatch):
    def refuses(self, X, y):
        raise ValueError("no such luck\nsecond line")

    monkeypatch.setattr(cs.OnlinePerceptron, "fit", refuses)
    X, y = cs.Views({"a": A, "b": B}), (F > 0).astype(int)
    board = compare(X, y, learners=["OnlinePerceptron", "LateFusion"], folds=2)
    assert [row.name for row in board] == ["LateFusion"]
    assert board.failed == {"OnlinePerceptron": "no such luck"}
    assert "Could not be fitted: OnlinePerceptron: no such luck" in write_report_text(examine(X, y, board))
    with pytest.raises(ValueError, match=r"No learner could be fitted\. OnlinePerceptron: no such luck"):
        compare(X, y, learners=["OnlinePerceptron"], folds=2)


BAD = {
    r"y must have one target per sample; got the shape \(120, 2\)": np.zeros((120, 2)),
    "3 samples have no target": np.where(np.arange(120) < 3, np.nan, F),
    r"several types \(float, int, str\)": np.array([1, "a", 2.5, "b"] * 30, dtype=object),
    "All samples are of the class": np.zeros(120, dtype=int),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_targets_get_a_sentence(message):
    with pytest.raises(ValueError, match=message):
        compare(cs.Views({"a": A, "b": B}), BAD[message])
    with pytest.raises(ValueError, match="fewer than two for each of the 6 folds"):
        compare(cs.Views({"a": A[:10], "b": B[:10]}), F[:10], folds=6)


# -- intervals
def test_few_folds_that_agree_prove_little():
    low, high = share_interval(0.9, 100)
    assert (low, high) == pytest.approx((0.825634, 0.944771), abs=1e-5)  # Wilson 1927 in closed form
    same = np.array([0.0333, 0.0333, 0.0333])
    right = np.ones(90, dtype=bool)
    other = right.copy()
    other[:3] = False
    low, high = difference_interval(same, 0.5, (right, other))
    assert low < 0 < high  # three samples of 90
    assert difference_interval(same, 0.5) == pytest.approx((0.0333, 0.0333))
    other[:40] = False
    assert difference_interval(np.full(3, 40 / 90), 0.5, (right, other))[0] > 0
    wide = np.array([0.1, -0.2, 0.3])
    assert difference_interval(wide, 0.5, (right, right)) == interval(wide, 0.5)


def test_learning_curves_have_honest_intervals():
    y = np.array(["p", "q"] * 30)
    X = cs.Views({"a": 10.0 * (y == "p")[:, None] + rng.normal(size=(60, 1)), "b": rng.normal(size=(60, 2))})
    found = examine(X, y, compare(X, y, learners=["LateFusion"], folds=3))
    assert (found.curve[:, 3] <= 1).all()
    assert (found.curve[:, 2] < found.curve[:, 1]).all()
    assert all(low < high for _, low, high in found.losses.values())


# -- reports of odd data
def test_rare_and_many_classes_get_a_report():
    for y, folds in (
        (np.where(np.arange(120) % 20 == 0, "ill", "well"), 3),
        (np.arange(120) % 12, 3),
        (np.r_[np.zeros(118, dtype=int), 1, 1], 2),
    ):
        X = cs.Views({"a": A, "b": B})
        board = compare(X, y, learners=["LateFusion", "ViewMetricRidgeClassifierCV"], folds=folds)
        assert "Leaderboard" in write_report_text(examine(X, y, board))
    X = cs.Views({"a": A[:12], "b": B[:12]})
    assert "Leaderboard" in write_report_text(examine(X, F[:12], compare(X, F[:12], folds=6)))


def test_views_left_out_of_a_learner_that_never_had_them_are_not_judged():
    X, y = cs.Views({"a": A, "b": B}), (F > 0).astype(int)
    found = examine(X, y, compare(X, y, learners=["a alone"], folds=2))
    assert found.losses == {}
    assert "takes one view" in write_report_text(found)


def test_views_that_meet_in_a_metric_are_not_asked_one_by_one():
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    board = compare(X, y, learners=["ViewMetricRidgeClassifierCV", "CoRegularizedRidgeClassifierCV"], folds=2)
    assert examine(X, y, board).speaker == "CoRegularizedRidgeClassifierCV"
    only = compare(X, y, learners=["ViewMetricRidgeClassifierCV"], folds=2)
    found = examine(X, y, only)
    assert found.speaker == ""
    assert [sorted(each) for each in found.chosen] == [["alpha", "metric_penalty"]] * 3
    assert found.chosen[1]["alpha"] == learner_of(fitted(only, X, y, 0)).alpha_


def fitted(board, X, y, k):
    train, _ = board.splits[k]
    return candidates(X, y)[board[0].name][0].fit(X[train], y[train])


def test_classes_stand_in_their_order_and_long_names_inside_the_chart():
    y = np.arange(120) % 12
    X = cs.Views({"a" * 40: A, "b": B})
    text = write_report_text(examine(X, y, compare(X, y, learners=["LateFusion"], folds=2)))
    chart = text[text.index('aria-label="Confusion matrix') :]
    assert re.findall(r'text-anchor="end"[^>]*>(\d+)<', chart)[:12] == [str(k) for k in range(12)]


# -- the command line
@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame({"p": A[:, 0], "q": A[:, 1], "r": B[:, 0], "y": np.where(F > 0, "up", "down")})
    frame[:80].to_csv(tmp_path / "train.csv", index=False)
    frame[80:].to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def test_models_know_their_columns_whatever_the_file_is_called(table):
    model = table / "m.cons"
    run("fit", table / "train.csv", "-y", "y", "-l", "MaxMarginClassifier", "--save", model)
    told = json.loads(run("evaluate", model, table / "test.csv", "-y", "y", "--json").stdout)
    assert told["samples"] == 40
    assert told["accuracy"] > 0.6
    assert len(json.loads(run("predict", model, table / "test.csv", "--json").stdout)["predictions"]) == 40
    wide = pd.read_csv(table / "train.csv").rename(columns={"p": "a__p", "q": "a__q", "r": "b__r"})
    wide.to_csv(table / "wide.csv", index=False)
    run("fit", table / "wide.csv", "-y", "y", "-l", "LateFusion", "--save", model)
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


def test_numbers_from_the_command_line(table):
    frame = pd.DataFrame({"a__0": A[:, 0], "b__0": B[:, 0], "age": np.round(20 * F + 300).astype(int)})
    frame.to_parquet(table / "age.parquet")
    words = ("compare", table / "age.parquet", "-y", "age", "--numbers", "-j", 1, "--folds", 3)
    told = json.loads(run(*words, "-l", "coregularized-ridge-cv", "--save", table / "m.cons", "--json").stdout)
    assert told["measure"] == "R2"
    assert told["leaderboard"][0]["score"] > 0.5
    found = json.loads(run("evaluate", table / "m.cons", table / "age.parquet", "-y", "age", "--json").stdout)
    assert found["R2"] > 0.5
    run("fit", table / "age.parquet", "-y", "age", "-l", "CoRegularizedRidge", "--save", table / "m.cons")
    assert (
        json.loads(run("evaluate", table / "m.cons", table / "age.parquet", "-y", "age", "--json").stdout)["R2"] > 0.5
    )
    assert "CoRegularizedRidge" in run("inspect", table / "m.cons").stdout
    for name in ("early-fusion", "LateFusion"):
        frame.assign(age=frame.age + 0.5).to_parquet(table / "f.parquet")
        run("fit", table / "f.parquet", "-y", "age", "-l", name, "--save", table / "m.cons")


def test_empty_targets_of_csv_are_left_out(table):
    frame = pd.read_csv(table / "train.csv")
    frame.loc[::8, "y"] = None
    frame.to_csv(table / "gaps.csv", index=False)
    told = json.loads(run("compare", table / "gaps.csv", "-y", "y", "-l", "latefusion", "-j", 1, "--json").stdout)
    assert (told["samples"], told["left out"]) == (70, 10)
    assert json.loads(run("stream", table / "gaps.csv", "--json").stdout)["samples"] == 70


def test_models_of_files_with_gaps_are_saved_and_take_gaps_later(table):
    frame = pd.read_csv(table / "train.csv")
    frame.iloc[::9, 0] = None
    frame.to_csv(table / "holes.csv", index=False)
    model, report = table / "m.cons", table / "r.html"
    for file in ("holes.csv", "train.csv"):
        run("fit", table / file, "-y", "y", "-l", "LateFusion", "--save", model)
        for other in ("holes.csv", "test.csv"):
            told = json.loads(run("evaluate", model, table / other, "-y", "y", "--json").stdout)
            assert told["accuracy"] > 0.5
    words = (
        "compare",
        table / "holes.csv",
        "-y",
        "y",
        "-l",
        "EarlyFusion",
        "-j",
        1,
        "--save",
        model,
        "--report",
        report,
    )
    assert "accuracy on held-out samples of 80" in run(*words).stdout
    assert report.exists()
    assert len(cs.load(model).predict(cs.Views(holes=frame[["p", "q", "r"]]))) == 80


def test_a_layout_may_name_target_and_names(table):
    (table / "l.toml").write_text('target = "y"\n[views]\na = ["p", "q"]\nb = "r"\n')
    told = json.loads(
        run("compare", table / "train.csv", "--views", table / "l.toml", "-l", "LateFusion", "-j", 1, "--json").stdout
    )
    assert told["views"] == ["a", "b"]
    assert json.loads(run("stream", table / "train.csv", "--views", table / "l.toml", "--json").stdout)["samples"] == 80


def test_booleans_are_numbers_and_dates_are_refused_by_name(table):
    frame = pd.DataFrame({"a__flag": A[:, 0] > 0, "b__x": B[:, 0], "y": F > 0})
    frame.to_csv(table / "b.csv", index=False)
    frame.to_parquet(table / "b.parquet")
    found = [json.loads(run("stream", table / f"b.{kind}", "--json").stdout)["mistakes"] for kind in ("csv", "parquet")]
    assert found[0] == found[1]
    told = json.loads(run("compare", table / "b.csv", "-y", "y", "-l", "LateFusion", "-j", 1, "--json").stdout)
    assert told["views"] == ["a", "b"]
    frame.assign(a__day=pd.Timestamp("2020-01-01")).to_parquet(table / "d.parquet")
    for command in ("compare", "stream"):
        with pytest.raises(ValueError, match=r"Column 'a__day' of '.*' holds"):
            run(command, table / "d.parquet", "-y", "y")


MISTAKES = {
    "--jobs is at least 1, or -1 for one per core; got 0.": ("compare", "train.csv", "-y", "y", "-j", "0"),
    "Name the column of the class or target by --target (-y)": ("compare", "train.csv"),
    "is a folder. Name a file to write.": ("compare", "train.csv", "-y", "y", "--report", "."),
    "does not exist. Make it first.": ("fit", "train.csv", "-y", "y", "-l", "LateFusion", "--save", "no/m.cons"),
    "No sample of 'ids.csv' is in another file": ("compare", "ids.csv", "more.csv", "--id", "id", "-y", "y"),
    "The stream has no samples with a class.": ("stream", "head.csv"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_get_a_sentence(message, table, monkeypatch):
    monkeypatch.chdir(table)
    frame = pd.read_csv("train.csv")
    frame.assign(id=range(80)).to_csv("ids.csv", index=False)
    frame[["p"]].assign(id=[f"s{i}" for i in range(80)]).to_csv("more.csv", index=False)
    (table / "head.csv").write_text("a,y\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        run(*MISTAKES[message])


def test_json_has_no_numbers_that_are_none(table):
    frame = pd.DataFrame({"a__0": A[:, 0], "b__0": B[:, 0], "z": F})
    frame.to_csv(table / "z.csv", index=False)
    frame[:1].to_csv(table / "one.csv", index=False)
    run("fit", table / "z.csv", "-y", "z", "-l", "CoRegularizedRidge", "--save", table / "m.cons")
    out = run("evaluate", table / "m.cons", table / "one.csv", "-y", "z", "--json").stdout
    assert json.loads(out, parse_constant=pytest.fail)["R2"] is None
