"""A user's day: three files with different patients, centers and an external cohort; three commands."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run, summary

import consilience as cs

N, EXTERNAL = 150, 60


def cohort(folder, n, seed, centers):
    """Write three Parquet files of patients of whom each file lacks some, with gaps; return the diagnoses by name."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.45
    names = np.array([f"{centers[0]}-{i:03d}" for i in range(n)])
    rna = rng.normal(size=(n, 40)) + 0.9 * np.outer(ill, np.arange(40) < 5)
    protein = rng.normal(size=(n, 12)) + 1.0 * np.outer(ill, np.arange(12) < 3)
    rna[rng.random(rna.shape) < 0.02] = np.nan
    frames = {
        "rna": pd.DataFrame(rna, columns=[f"ENSG{j:05d}" for j in range(40)]),
        "protein": pd.DataFrame(protein, columns=[f"P{j:05d}" for j in range(12)]),
        "clinical": pd.DataFrame({
            "age": rng.normal(60, 10, size=n).round(1),
            "sex": pd.Categorical(rng.choice(["f", "m"], size=n)),
            "stage": np.where(ill, rng.choice(["II", "III"], size=n), rng.choice(["I", "II"], size=n)),
            "center": rng.choice(centers, size=n),
            "diagnosis": np.where(ill, "ill", "healthy"),
        }),
    }  # fmt: skip
    frames["clinical"].loc[::17, "age"] = np.nan
    for name, lost in (("rna", 0.1), ("protein", 0.25), ("clinical", 0.0)):
        frame = frames[name].assign(patient=names)
        kept = rng.permutation(np.flatnonzero(rng.random(n) >= lost))  # other patients, in another order
        frame.iloc[kept].to_parquet(folder / f"{name}.parquet", index=False)
    return pd.Series(np.where(ill, "ill", "healthy"), index=names)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    for name, n, seed, centers in (("own", N, 0, ["A", "B", "C", "D", "E"]), ("external", EXTERNAL, 1, ["X", "Y"])):
        (folder / name).mkdir()
        truth = cohort(folder / name, n, seed, centers)
        truth.to_json(folder / f"{name}.json")
    return folder


def files(study, cohort):
    return [study / cohort / f"{name}.parquet" for name in ("rna", "protein", "clinical")]


def test_from_files_to_a_report_a_model_and_predictions_in_three_commands(study):
    model, report, external, out = (study / name for name in ("m.cons", "report.html", "external.html", "p.csv"))
    by_name = ("--id", "patient", "-y", "diagnosis")
    # 1. compare, with centers kept together; a report and the best model
    first = summary(
        "compare", *files(study, "own"), *by_name, "--groups", "center", "--scoring", "roc_auc,accuracy", "--cv", 3,
        "-j", 1, "-e", "ConsensusClassifier", "-e", "LateFusion", "-e", "rna alone", "--baselines", "--report", report,
        "--save", model, "--csv", study / "board.csv",
    )  # fmt: skip
    read = {row["view"]: row for row in first["read"]}
    assert {name: row["samples"] for name, row in read.items()} == {
        name: len(pd.read_parquet(study / "own" / f"{name}.parquet")) for name in read
    }
    assert read["rna"]["gaps"] > 0
    assert read["protein"]["missing"] > 20
    assert read["clinical"]["columns"] == 1 + 2 + 3  # age, sex and stage; not the center or the diagnosis
    rows = {row["estimator"]: row for row in first["leaderboard"]}
    assert {"ConsensusClassifier", "rna alone", "DummyClassifier", "RandomForestClassifier"} <= set(rows)
    assert first["leaderboard"][0]["score"] > 0.85 > 0.55 > rows["DummyClassifier"]["score"]
    page = report.read_text()
    for words in ("diagnosis", "rna.parquet", "Consensus of all kernels"):
        assert words in page
    assert len(pd.read_csv(study / "board.csv")) == len(rows)
    # 2. the external cohort
    second = summary("evaluate", model, *files(study, "external"), *by_name, "--report", external)
    assert second["samples"] == EXTERNAL
    assert second["AUC"] > 0.8
    low, high = second["intervals"]["AUC"]
    assert low < second["AUC"] < high
    assert [own["class"] for own in second["classes"]] == ["healthy", "ill"]
    page = external.read_text()
    for words in ("Sensitivity", "ROC", "alibration"):
        assert words in page
    # 3. predictions with probabilities
    third = summary("predict", model, *files(study, "external"), "--id", "patient", "--proba", "--out", out)
    assert third["predictions"] == EXTERNAL
    table = pd.read_csv(out, index_col="patient")
    assert list(table) == ["prediction", "probability_healthy", "probability_ill"]
    np.testing.assert_allclose(table.probability_healthy + table.probability_ill, 1)
    truth = pd.Series(json.loads((study / "external.json").read_text()))
    assert (table.prediction[truth.index] == truth).mean() == pytest.approx(second["accuracy"])


def test_the_same_by_fit_with_sets_of_classes(study):
    model = study / "fit.cons"
    done = run("fit", *files(study, "own"), "--id", "patient", "-y", "diagnosis", "--groups", "center", "--save", model)
    assert "ConsensusClassifier" in done.stdout
    assert "model.predict(consilience.read_samples(" in done.stdout
    assert "held-out accuracy" in done.stdout
    assert done.stderr.startswith("Read 150 samples of 3 views:")
    found = summary("predict", model, *files(study, "external"), "--id", "patient", "--coverage", 0.9)["predictions"]
    truth = pd.Series(json.loads((study / "external.json").read_text()))
    covered = np.mean([truth[row["id"]] in row["classes"] for row in found])
    assert covered > 0.75  # 60 patients of other centers
    importances = cs.load(model).view_importances_
    assert set(importances) == {"rna", "protein", "clinical"}
