"""Before a command works, it says what it read; help has examples; a saved model comes with the lines that use it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from commands import ended, predicted, refused, run, summary
from sklearn.datasets import dump_svmlight_file

import consilience as cs
from consilience.cli._compare import repeated_folds
from consilience.cli._reading import described_views
from consilience.cli.main import app

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(RNG.normal(size=(N, 4)), columns=["a__0", "a__1", "b__0", "b__1"])
FRAME["y"] = np.where(FRAME["a__0"] + FRAME["b__1"] > 0, "ill", "healthy")


@pytest.fixture
def data(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def written(folder, name="t.csv", **columns):
    FRAME.assign(**columns).to_csv(folder / name, index=False)
    return folder / name


def fitted(*words):
    return run("fit", *words, "-y", "y", "-e", "OnlinePerceptron")


# -- the table of views
def test_the_table_of_views_goes_to_standard_error_or_into_json(tmp_path):
    frame = FRAME.copy()
    frame.loc[:9, ["b__0", "b__1"]] = np.nan  # the view is missing
    frame.loc[20:22, "a__0"] = np.nan  # cells are
    data, model = tmp_path / "t.csv", tmp_path / "m.cons"
    frame.to_csv(data, index=False)
    done = fitted(data, "--save", model)
    lines = done.stderr.splitlines()
    assert lines[0] == "Read 60 samples of 2 views:"
    assert [line.split() for line in lines[1:]] == [
        ["view", "kind", "columns", "samples", "missing", "gaps"],
        ["a", "numbers", "2", "60", "0", "3"],
        ["b", "numbers", "2", "50", "10", "0"],
        ["Task:", "classification,", "2", "classes:", "healthy,", "ill"],
    ]
    assert "Read 60" not in done.stdout
    read = summary("fit", data, "-y", "y", "-e", "OnlinePerceptron", "--save", model)["read"]
    assert read[1] == {"view": "b", "kind": "numbers", "columns": 2, "samples": 50, "missing": 10, "gaps": 0}
    assert "Read" not in run("predict", model, data, "--json").stderr
    for words in (("predict", model, data), ("evaluate", model, data, "-y", "y")):
        assert summary(*words)["read"] == read
        assert run(*words).stderr.startswith("Read 60 samples of 2 views:")


def test_every_kind_of_view_is_described():
    import scipy.sparse as sp

    X = cs.Views({"t": ["x", "y", None], "s": sp.csr_array(np.eye(3)), "g": np.eye(3)}, precomputed="g")
    rows = {row["view"]: (row["kind"], row["columns"], row["samples"]) for row in described_views(X)}
    assert rows == {"t": ("text", None, 2), "s": ("sparse numbers", 3, 3), "g": ("Gram matrix", None, 3)}


# -- columns that look wrong
LIKE_IDS = {
    "numbers in a row": {"a__nr": np.arange(1000, 1000 + N)},
    "numbers in any order, some left out": {"a__x": RNG.permutation(N + 8)[:N]},
    "other numbers with a name": {"a__patient_id": RNG.choice(10**6, N, replace=False)},
}
UNLIKE_IDS = {
    "real numbers": {"a__patient_id": RNG.normal(size=N)},
    "counts": {"a__ENSG01": RNG.choice(10**6, N, replace=False)},
    "repeated numbers": {"a__id": np.arange(N) // 2},
    "a gene": {"a__ID1": RNG.choice(10**6, N, replace=False)},
}


@pytest.mark.parametrize("name", LIKE_IDS)
def test_columns_that_number_the_samples_are_told(name, tmp_path):
    data = written(tmp_path, **LIKE_IDS[name])
    (column,) = LIKE_IDS[name]
    said = fitted(data, "--save", tmp_path / "m.cons").stderr
    assert f"Warning: View 'a' has '{column}', which has another value in every sample, as names or numbers of" in said
    told = summary("fit", data, "-y", "y", "-e", "OnlinePerceptron", "--save", tmp_path / "m.cons")["warnings"]
    assert len(told) == 1
    assert "Warning" not in run("predict", tmp_path / "m.cons", data).stderr


@pytest.mark.parametrize("name", UNLIKE_IDS)
def test_other_columns_are_not(name, tmp_path):
    assert "Warning" not in fitted(written(tmp_path, **UNLIKE_IDS[name]), "--save", tmp_path / "m.cons").stderr


def test_text_that_names_the_samples_is_told(tmp_path):
    frame = pd.DataFrame({"x": RNG.normal(size=N), "code": [f"P{i:03d}" for i in RNG.permutation(N)], "y": FRAME["y"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = ("fit", tmp_path / "t.csv", "-y", "y", "--save", tmp_path / "m.cons")
    said = run(*given).stderr
    assert "'code', which has another value in every sample" in said
    assert "Warning" not in run(*given, "--id", "code").stderr


def test_prefixes_of_some_columns_are_told(tmp_path):
    frame = FRAME.rename(columns={"b__1": "age"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = (tmp_path / "t.csv", "--save", tmp_path / "m.cons")
    said = fitted(*given).stderr
    assert "Warning: View 't' has 3 columns with a prefix, such as 'a__0', and others without, such as 'age'." in said
    (tmp_path / "v.toml").write_text('[views]\na = ["a__*", "age"]\nb = ["b__*"]\n')
    assert "Warning" not in fitted(*given, "--views", tmp_path / "v.toml").stderr


# -- help, version, how to use a model
def test_every_command_has_examples():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert set(names) == {
        "demo", "compare", "fit", "predict", "evaluate", "stream", "inspect", "reproduce", "estimators", "kernels",
    }  # fmt: skip
    for name in names:
        shown = run(name, "--help").stdout
        assert f"Examples:\n    consilience {name}" in shown or f"consilience {name} " in shown.split("Examples:")[1]
    assert "--version" in run("--help").stdout


def test_the_version():
    assert run("--version").stdout == f"consilience {cs.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "consilience.cli.main", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"consilience {cs.__version__}\n")


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_the_lines_that_use_a_model_work_as_printed(command, data, tmp_path):
    model = tmp_path / "my model.cons"
    words = {"fit": ["fit"], "compare": ["compare", "-e", "LateFusion", "--cv", 2, "-j", 1]}[command]
    use = summary(*words, data, "-y", "y", "--save", model)["use"]
    names = {"consilience": cs}
    exec(use["python"][0], names)
    predictions = eval(use["python"][1], names)
    assert predictions.tolist() == cs.load(model).predict(cs.read_samples([data], target="y").X).tolist()
    import shlex

    program, *rest = shlex.split(use["command"])
    assert program == "consilience"
    shown = run(*rest).stdout
    assert "probability_healthy" in shown
    text = run(*words, data, "-y", "y", "--save", model).stdout
    for line in (*use["python"], use["command"]):
        assert f"  {line}\n" in text


def test_the_lines_repeat_how_files_were_read(tmp_path):
    data = written(tmp_path, center=["north", "south"] * 30, w=np.ones(N))
    use = summary("fit", data, "-y", "y", "--groups", "center", "--weights", "w", "--save", tmp_path / "m.cons")["use"]
    assert "groups='center', columns={'w': 'regression'}" in use["python"][1]
    names = {"consilience": cs}
    exec(use["python"][0], names)
    assert len(eval(use["python"][1], names)) == N


# -- the default estimator
def test_fit_takes_the_consensus_by_the_task(data, tmp_path):
    model = tmp_path / "m.cons"
    assert summary("fit", data, "-y", "y", "--save", model)["estimator"] == "ConsensusClassifier"
    assert isinstance(cs.load(model), cs.ConsensusClassifier)  # without a scaling before it
    numbers = written(tmp_path, "n.csv", y=3 * FRAME["a__0"] + 100)
    assert summary("fit", numbers, "-y", "y", "--save", model)["estimator"] == "ConsensusRegressor"
    assert summary("evaluate", model, numbers, "-y", "y")["R2"] > 0.9
    assert refused("fit", data, "-y", "y", "--no-scale", "--save", model).startswith(
        "ConsensusClassifier scales its views by itself."
    )
    message = refused("fit", data, "-y", "y", "--share", "--save", model)
    assert message.startswith("Not shared: ConsensusClassifier predicts from 60 training samples of the views 'a', 'b'")
    prepared = summary("fit", data, "-y", "y", "--prepare", "quantile", "--save", model)
    assert prepared["estimator"] == "ConsensusClassifier"


def test_groups_and_weights_of_a_fit(tmp_path):
    weights = np.r_[np.zeros(20), np.ones(40)]
    data = written(tmp_path, center=np.repeat(["n", "s", "w"], 20), w=weights)
    model = tmp_path / "m.cons"
    given = ("fit", data, "-y", "y", "--save", model)
    X = cs.read_samples([data], target="y", columns=["center", "w"]).X
    run(*given, "--groups", "center", "--weights", "w", "--class-weight", "balanced")
    expected = cs.ConsensusClassifier(class_weight="balanced").fit(
        X, FRAME["y"].to_numpy(), weights, np.repeat(["n", "s", "w"], 20)
    )
    np.testing.assert_allclose(cs.load(model).predict_proba(X), expected.predict_proba(X))
    ridge = ("fit", data, "-y", "y", "-e", "CoRegularizedRidgeClassifier", "--save", model)
    assert "does not use groups" in refused(*ridge, "--groups", "center")
    run(*ridge, "--weights", "w", "--class-weight", "ill=2", "--set", "alpha=0.1")
    assert cs.load(model)[-1].class_weight == {"ill": 2.0}
    assert "'w2' has 'x'" in refused(*given[:1], written(tmp_path, "x.csv", w2="x"), *given[2:], "--weights", "w2")
    for wrong in ("ill", "dead=2", "ill=two"):
        assert "--class-weight takes" in refused(*given, "--class-weight", wrong)
    negative = written(tmp_path, "neg.csv", w=-1.0)
    assert "at least 0 for every sample; 'w' has -1.0" in refused("fit", negative, *given[2:], "--weights", "w")


# -- predictions
def test_probabilities_sets_and_intervals(data, tmp_path):
    model, out = tmp_path / "m.cons", tmp_path / "p.csv"
    run("fit", data, "-y", "y", "--save", model)
    fitted_model, X = cs.load(model), cs.read_samples([data], target="y").X
    rows = summary("predict", model, data, "--proba", "--coverage", 0.8)["predictions"]
    expected = fitted_model.predict_proba(X)
    assert [row["probabilities"] for row in rows] == [pytest.approx({"healthy": p, "ill": q}) for p, q in expected]
    sets = fitted_model.predict_set(X, coverage=0.8)
    assert [row["classes"] for row in rows] == [fitted_model.classes_[inside].tolist() for inside in sets]
    run("predict", model, data, "--proba", "--coverage", 0.8, "--out", out)
    table = pd.read_csv(out)
    assert list(table)[2:] == ["probability_healthy", "probability_ill", "in_set_healthy", "in_set_ill"]
    np.testing.assert_array_equal(table[["in_set_healthy", "in_set_ill"]], sets)
    np.testing.assert_allclose(table[["probability_healthy", "probability_ill"]], expected)
    numbers = written(tmp_path, "n.csv", y=3 * FRAME["a__0"] + 100)
    run("fit", numbers, "-y", "y", "--save", model)
    rows = summary("predict", model, numbers, "--coverage", 0.9)["predictions"]
    ends = cs.load(model).predict_interval(X, coverage=0.9)
    np.testing.assert_allclose([[row["low"], row["high"]] for row in rows], ends)
    assert "--proba is for classes" in refused("predict", model, numbers, "--proba")
    assert "between 0 and 1" in refused("predict", model, numbers, "--coverage", 90)


def test_models_without_probabilities_are_refused_with_the_remedy(data, tmp_path):
    model = tmp_path / "m.cons"
    run("fit", data, "-y", "y", "-e", "CoRegularizedRidgeClassifier", "--save", model)
    assert "CoRegularizedRidgeClassifier of" in (said := refused("predict", model, data, "--proba"))
    assert "Fit without --estimator (-e), or save a CalibratedClassifierCV" in said
    assert "--coverage needs a model with sets of classes" in refused("predict", model, data, "--coverage", 0.9)


def test_a_calibrated_classifier_that_was_saved_from_python_predicts_probabilities(data, tmp_path):
    from sklearn.calibration import CalibratedClassifierCV

    X, model = cs.read_samples([data], target="y").X, tmp_path / "m.cons"
    calibrated = CalibratedClassifierCV(cs.CoRegularizedSVC(), cv=3).fit(X, FRAME["y"])
    cs.save(calibrated, model)
    rows = summary("predict", model, data, "--proba")["predictions"]
    assert [row["probabilities"]["ill"] for row in rows] == pytest.approx(calibrated.predict_proba(X)[:, 1])


# -- evaluation
def test_evaluation_prints_measures_with_intervals_and_classes(data, tmp_path):
    model = tmp_path / "m.cons"
    run("fit", data, "-y", "y", "--save", model)
    found = summary("evaluate", model, data, "-y", "y")
    X = cs.read_samples([data], target="y").X
    assert found["accuracy"] == np.mean(cs.load(model).predict(X) == FRAME["y"])
    low, high = found["intervals"]["accuracy"]
    assert low <= found["accuracy"] <= high + 1e-12
    assert [own["class"] for own in found["classes"]] == ["healthy", "ill"]
    assert found["classes"][1]["sensitivity"]["low"] <= found["classes"][1]["sensitivity"]["value"]
    shown = run("evaluate", model, data, "-y", "y").stdout
    for words in ("accuracy", "AUC", "95% interval", "sensitivity of ill", "PPV of healthy"):
        assert words in shown


@pytest.mark.parametrize("positive", ["healthy", "ill"])
def test_the_positive_class_is_that_of_curves_and_scores(positive, data, tmp_path):
    from sklearn.metrics import average_precision_score, make_scorer

    model, report = tmp_path / "m.cons", tmp_path / "e.html"
    run("fit", data, "-y", "y", "--save", model)
    run("evaluate", model, data, "-y", "y", "--positive", positive, "--report", report)
    assert f"Predicted probability of {positive}" in report.read_text()
    words = ("-y", "y", "-e", "LateFusion", "--cv", 3, "-j", 1, "--scoring", "average_precision")
    found = summary("compare", data, *words, "--positive", positive)["leaderboard"][0]["score"]
    X, y = cs.read_samples([data], target="y").X, FRAME["y"].to_numpy()
    scorer = make_scorer(average_precision_score, response_method="predict_proba", pos_label=positive)
    row = cs.compare(X, y, estimators=["LateFusion"], cv=3, baselines=False, scoring=scorer)[0]
    shares = row.probabilities[:, ["healthy", "ill"].index(positive)]
    folds = [part.test for part in row.parts]
    expected = np.mean([average_precision_score(y[test] == positive, shares[test]) for test in folds])
    assert found == pytest.approx(expected)
    said = refused("evaluate", model, data, "-y", "y", "--positive", "sick")
    assert said == "--positive names one of two classes; got 'sick'. The classes are healthy, ill."


# -- the task
def test_the_task_is_printed_and_whole_numbers_of_many_values_need_it(tmp_path):
    model, folds = tmp_path / "m.cons", ("-e", "LateFusion", "--cv", 2, "-j", 1)
    days = written(tmp_path, "days.csv", y=np.arange(N) // 2)
    for words in (("fit", days, "--save", model), ("compare", days)):
        said = refused(*words, "-y", "y")
        assert said.startswith("The target 'y' has 30 different whole numbers in 60 samples. Pass --task regression if")
    told = run("fit", days, "-y", "y", "--task", "regression", "--save", model).stderr
    assert "Task: regression, 30 values" in told
    assert isinstance(cs.load(model), cs.ConsensusRegressor)
    told = run("compare", days, "-y", "y", "--task", "regression", *folds).stderr
    assert "Task: regression, 30 values" in told
    grades = written(tmp_path, "grades.csv", y=[1, 2, None] * (N // 3))
    pd.read_csv(grades).astype({"y": "Int64"}).to_csv(grades, index=False)
    found = summary("fit", grades, "-y", "y", "--save", model)
    assert found["target"] == "classification, 2 classes: 1, 2"
    assert found["classes"] == [1, 2]
    assert {row["prediction"] for row in predicted(model, grades)} <= {1, 2}
    one = written(tmp_path, "one.csv", y="ill")
    for words in (("fit", one, "--save", model), ("compare", one)):
        assert refused(*words, "-y", "y").startswith("The target 'y' has only the class 'ill'; classification needs")


def test_models_of_classes_that_are_text_read_them_as_text(tmp_path):
    model = tmp_path / "m.cons"
    run("fit", written(tmp_path, y=np.where(FRAME["y"] == "ill", "1.10", "1.1")), "-y", "y", "--task", "classification",
        "--save", model)  # fmt: skip
    assert cs.load(model).classes_.tolist() == ["1.1", "1.10"]
    codes = written(tmp_path, y=np.where(FRAME["y"] == "ill", "1", "B"))
    run("fit", codes, "-y", "y", "--save", model)
    only = written(tmp_path, y=np.where(FRAME["y"] == "ill", "1", ""))
    assert summary("evaluate", model, only, "-y", "y")["samples"] == (FRAME["y"] == "ill").sum()


def test_codes_are_categories_on_request_and_names_of_new_files_may_have_no_heading(tmp_path):
    model, names = tmp_path / "m.cons", [f"s{k}" for k in range(N)]
    FRAME[["a__0", "a__1"]].set_axis(names).to_csv(tmp_path / "rna.csv")  # the names have no heading
    clinical = FRAME[["y"]].assign(patient=names, stage=np.arange(N) % 3, age=50.5)
    clinical.to_csv(tmp_path / "clinical.csv", index=False)
    run("fit", tmp_path / "rna.csv", tmp_path / "clinical.csv", "--id", "patient", "-y", "y", "--category", "stage",
        "--save", model)  # fmt: skip
    known = cs.load(model)._known["clinical"]
    assert list(known[2]) == ["stage=0", "stage=1", "stage=2", "age"]
    expected = predicted(model, tmp_path / "rna.csv", tmp_path / "clinical.csv", "--id", "patient")
    assert [row["id"] for row in expected] == names
    assert [row["id"] for row in predicted(model, tmp_path / "rna.csv", "--id", "patient")] == names


# -- comparison
def test_options_of_a_comparison(data, tmp_path):
    csv, model = tmp_path / "board.csv", tmp_path / "m.cons"
    given = ("compare", data, "-y", "y", "-e", "LateFusion", "-e", "onlineperceptron", "--cv", 2, "-j", 1)
    found = summary(*given, "--scoring", "roc_auc,accuracy", "--scoring", "f1_macro", "--csv", csv)
    assert found["scoring"] == "roc_auc"
    assert set(found["leaderboard"][0]["measures"]) == {"roc_auc", "accuracy", "f1_macro"}
    assert len(found["leaderboard"][0]["measures"]["accuracy"]) == 2
    assert {row["estimator"] for row in found["leaderboard"]} == {"LateFusion", "OnlinePerceptron"}
    assert found["leaderboard"][0]["verdict"] == "best"
    assert found["leaderboard"][1]["verdict"] in ("different", "not told apart", "too few samples to tell")
    assert found["simplest"] in ("LateFusion", "OnlinePerceptron")
    table = pd.read_csv(csv)
    assert len(table) == 2
    assert "verdict" in table
    found = summary(*given, "--repeats", 2)
    assert len(found["leaderboard"][0]["measures"]["accuracy"]) == 4
    found = summary(*given, "--baselines", "--class-weight", "balanced")
    names = {row["estimator"] for row in found["leaderboard"]}
    assert {"RandomForestClassifier", "DummyClassifier", "HistGradientBoostingClassifier"} <= names
    shown = run(*given, "--save", model).stdout
    assert "Average of one logistic regression per view" in shown
    assert "verdict" in shown
    assert refused(*given, "--all").startswith("--all compares every estimator")


def test_a_column_without_a_name_is_not_one_of_weights(data, tmp_path):
    assert refused("fit", data, "-y", "y", "--weights", "", "--save", tmp_path / "m.cons").startswith("No column '' is")


def test_weights_of_a_comparison_are_those_of_the_column(tmp_path):
    weights = RNG.uniform(0.1, 2, size=N).round(3)
    data = written(tmp_path, w=weights)
    found = summary("compare", data, "-y", "y", "--weights", "w", "-e", "LateFusion", "--cv", 3, "-j", 1)
    X = cs.read_samples([data], target="y", columns=["w"]).X
    options = {"estimators": ["LateFusion"], "cv": 3, "baselines": False}
    board = cs.compare(X, FRAME["y"].to_numpy(), sample_weight=weights, **options)
    assert found["leaderboard"][0]["score"] == pytest.approx(board[0].score)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("grouped", [False, True])
def test_repeats_are_other_folds_that_test_every_sample(task, grouped):
    y = np.arange(40) % 2
    groups = np.arange(40) // 4 if grouped else None
    splits = repeated_folds(5, 3, y, task, groups, 0)
    assert len(splits) == 15
    tested = np.concatenate([test for _, test in splits])
    assert np.bincount(tested).tolist() == [3] * 40
    parts = [frozenset(test) for _, test in splits]
    assert len(set(parts)) > 10
    if grouped:
        assert all(not set(groups[train]) & set(groups[test]) for train, test in splits)


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "HistGradientBoostingClassifier", "DummyClassifier"])
def test_a_baseline_that_was_best_is_saved_and_predicts(kind, data, tmp_path):
    model = tmp_path / "m.cons"
    found = summary("compare", data, "-y", "y", "-e", kind, "--cv", 2, "-j", 1, "--save", model)
    assert found["saved estimator"] == kind
    rows = summary("predict", model, data, "--proba")["predictions"]
    assert len(rows) == N
    assert sum(rows[0]["probabilities"].values()) == pytest.approx(1)
    assert summary("inspect", model)["estimator"]


def test_an_unknown_option_is_not_understood(data):
    assert ended("fit", data, "--nonsense")[0] == 2


# -- JSON lines and libsvm
def test_predict_and_evaluate_read_json_lines(tmp_path):
    rows = [
        {"a": {"x": row["a__0"], "more": [row["a__1"], 0.5]}, "ids": [int(i), 3][: 1 + i % 2], "y": row["y"]}
        for i, row in enumerate(FRAME.to_dict("records"))
    ]
    path, model = tmp_path / "t.jsonl", tmp_path / "m.cons"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "l.toml").write_text('[views]\na = "a"\nids = "ids"\n')
    shown = summary("fit", path, "--views", tmp_path / "l.toml", "-y", "y", "-e", "KernelPerceptron", "--save", model,
                    "--set", 'kernel={"a": "linear", "ids": "spectrum"}')["read"]  # fmt: skip
    assert [(row["view"], row["kind"], row["columns"]) for row in shown] == [
        ("a", "numbers", 3),
        ("ids", "lists", None),
    ]
    assert len(summary("predict", model, path)["predictions"]) == N
    assert summary("evaluate", model, path, "-y", "y")["samples"] == N
    path.write_text(json.dumps(rows[0]) + "\n")  # one list tells no length, but the model knows its views
    assert len(summary("predict", model, path)["predictions"]) == 1


def test_predict_and_evaluate_read_libsvm(tmp_path):
    values, y = FRAME.to_numpy()[:, :4].astype(float), (FRAME["y"] == "ill").to_numpy().astype(int)
    path, model = tmp_path / "t.libsvm", tmp_path / "m.cons"
    dump_svmlight_file(values, y, str(path), zero_based=True)
    (tmp_path / "l.toml").write_text('[views]\na = "0:2"\nb = [2, 3]\n')
    form = ["--views", tmp_path / "l.toml"]
    fit = summary("fit", path, *form, "--libsvm-base", 0, "-e", "CoRegularizedRidgeClassifier", "--save", model)
    assert [(row["view"], row["columns"]) for row in fit["read"]] == [("a", 2), ("b", 2)]
    assert "--libsvm-base 0" in fit["use"]["command"]
    assert "libsvm_base=0" in fit["use"]["python"][1]
    expected = [row["prediction"] for row in summary("predict", model, path, *form)["predictions"]]
    values[:, 0] = 0  # no row has the first column
    dump_svmlight_file(values, y, str(path), zero_based=True)
    shifted, asked = (
        [row["prediction"] for row in summary("predict", model, path, *form, *base)["predictions"]]
        for base in ([], ["--libsvm-base", 0])
    )
    assert shifted != asked
    assert len(expected) == len(asked) == N
    assert summary("evaluate", model, path, *form, "--libsvm-base", 0)["samples"] == N


def test_kernels_are_listed_with_their_names():
    names = {row["name"]: row["short name"] for row in summary("kernels")["kernels"]}
    assert {names["Spectrum"], names["Subsequence"], names["SubsetTree"]} == {"spectrum", "subsequence", "subset_tree"}
    assert names["FromCallable"] == ""
