"""The options --prepare, --top-k and --batch: what they do to models, predictions and reports."""

import numpy as np
import pandas as pd
import pytest
from commands import ended, predicted, refused, summary

import consilience as cs
from consilience.views.batch_effects import RemoveBatch

N = 60
rng = np.random.default_rng(0)
Y = np.arange(N) % 2
PLATE = rng.integers(1, 4, N)
RNA = np.exp(rng.normal(size=(N, 6)) + np.outer(Y, [2, 0, 0, 0, 0, 0]))
METHYLATION = rng.normal(size=(N, 4)) - 5 * PLATE[:, None] + np.outer(Y, [0, 0, 1, 0])


@pytest.fixture
def folder(tmp_path):
    frame = pd.DataFrame(
        {
            **{f"rna__g{k}": RNA[:, k] for k in range(6)},
            **{f"met__m{k}": METHYLATION[:, k] for k in range(4)},
            "plate": PLATE,
            "y": np.where(Y, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame.drop(columns="y").to_parquet(tmp_path / "new.parquet")
    frame.drop(columns=["y", "plate"]).to_csv(tmp_path / "bare.csv", index=False)
    frame.assign(plate=["1", "x", "", *PLATE[3:].astype(str)]).to_csv(tmp_path / "odd.csv", index=False)
    return tmp_path


def expected():
    """The model of the options below, from arrays."""
    X = cs.Views({"rna": RNA, "met": METHYLATION, "plate": PLATE})
    steps = [{"rna": "log"}, RemoveBatch("plate"), "top_k:2"]
    return cs.candidates(X, Y, prepare=steps)["CoRegularizedSVC"][0].fit(X, Y), X


OPTIONS = ("--prepare", "rna=log", "--batch", "plate", "--top-k", 2)


def test_a_model_with_a_preparation_is_fitted_and_predicts(folder):
    model_file = folder / "m.cons"
    words = ("fit", folder / "all.csv", "-y", "y", "-e", "CoRegularizedSVC", "--save", model_file, *OPTIONS)
    assert summary(*words)["n features"] == 4
    model, X = expected()
    assert [type(step).__name__ for _, step in cs.load(model_file).steps] == [type(step).__name__ for step in model]
    by_hand = np.array(["no", "yes"])[model.predict(X)].tolist()
    for name in ("all.csv", "new.parquet"):
        assert [row["prediction"] for row in predicted(model_file, folder / name)] == by_hand
    assert summary("evaluate", model_file, folder / "all.csv", "-y", "y")["accuracy"] == np.mean(model.predict(X) == Y)


def test_the_lack_of_batches_is_told_at_prediction(folder):
    model_file = folder / "m.cons"
    ended("fit", folder / "all.csv", "-y", "y", "-e", "CoRegularizedSVC", "--save", model_file, *OPTIONS)
    code, said = ended("predict", model_file, folder / "bare.csv")
    assert code == 0
    assert "Warning: The effects of batches (view 'plate') stay in 60 of 60 samples: 60 without a batch." in said
    code, said = ended("predict", model_file, folder / "odd.csv")
    assert code == 0
    assert "stay in 2 of 60 samples: 1 without a batch and 1 with a batch that no training sample had (x)." in said


def test_comparisons_prepare_inside_the_folds_and_the_report_says_how(folder):
    words = ("compare", folder / "all.csv", "-y", "y", "-e", "LateFusion", "-e", "rna alone", "--cv", 2, "-j", 1)
    report, model_file = folder / "report.html", folder / "m.cons"
    found = summary(*words, *OPTIONS, "--report", report, "--save", model_file)
    assert found["views"] == ["rna", "met"]
    X = expected()[1]
    steps = [{"rna": "log"}, RemoveBatch("plate"), "top_k:2"]
    board = cs.compare(X, Y, prepare=steps, estimators=["LateFusion", "rna alone"], cv=2, baselines=False)
    assert [row["score"] for row in found["leaderboard"]] == pytest.approx([row.score for row in board])
    page = report.read_text()
    assert (
        "<dt>preparation of rna</dt><dd>log(1 + x); effects of 3 batches (1, 2, 3) removed; 2 of 6 columns kept, those "
        "with the strongest association with the target; single missing values filled with the mean; standardized</dd>"
    ) in page
    assert "fitted within the training part of each fold, too" in page
    assert len(predicted(model_file, folder / "new.parquet")) == N


def test_recipes_are_repeated_in_order_and_wrong_ones_refused(folder):
    fit = ("fit", folder / "all.csv", "-y", "y", "-e", "LateFusion", "--save", folder / "m.cons", "--batch", "plate")
    assert ended(*fit, "--prepare", "rna=log", "--prepare", "variance:3", "--prepare", "met=drop")[0] == 0
    model = cs.load(folder / "m.cons")
    assert model[-1].view_names_in_ == ("rna",)
    assert model[-1].n_features_in_ == 3
    assert refused(*fit, "--prepare", "sqrt").startswith("There is no recipe 'sqrt'. The recipes are standardize,")
    assert refused(*fit, "--prepare", "drop") == "--prepare takes RECIPE, or VIEW=RECIPE for one view; got 'drop'."
    assert "a transformer for the view 'dna', but the views are 'rna', 'met'" in refused(*fit, "--prepare", "dna=log")
    assert "but the recipe 'log' takes no negative values" in refused(*fit, "--prepare", "log")
    assert refused(*fit[:-1], "plates").startswith("No column 'plates' is in 'all.csv'")
