"""Silent errors that were possible: files and objects in other orders, with other columns, of other names.

Each is tried in Python and by commands, on data that are always there and on real multi-omics data. The right number or
a sentence, never a wrong number.
"""

import commands
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import consilience as cs
import strategies
from consilience.datasets import fetch_breast_tcga, fetch_tcga_brca, load_breast_cancer_views

MODEL = "CoRegularizedRidgeClassifier"


class Study:
    """Training and test samples in one file per view, a model of them, and its predictions by sample."""

    def __init__(self, bunch, folder, train, test):
        X = bunch.data
        names = [f"patient-{k}" for k in range(len(X))] if X.sample_names is None else X.sample_names
        views = {
            view: pd.DataFrame(X[view], index=pd.Index(names, name="who"), columns=X.feature_names[view])
            for view in X.names
        }
        y = pd.Series([f"kind {one}" for one in bunch.target], index=views[X.names[0]].index, name="kind")
        self.folder = folder
        self.train = {view: frame.iloc[train] for view, frame in views.items()}
        self.test = {view: frame.iloc[test] for view, frame in views.items()}
        self.y_train, self.y_test = y.iloc[train], y.iloc[test]
        self.scores = y.iloc[test]
        files = self.write("train", {**self.train, "labels": self.y_train.to_frame()})
        self.saved = folder / "model.cons"
        commands.run("fit", *files, "-e", MODEL, "--id", "who", "-y", "kind", "--save", self.saved)
        self.expected = self.predict(self.test)
        self.model = cs.CoRegularizedRidgeClassifier("linear").fit(self.train, self.y_train)
        self.decisions = pd.DataFrame(self.model.decision_function(self.test), index=self.y_test.index)

    def write(self, name, views, form="{}.csv"):
        """Write a file per view into a folder, and return the files."""
        (self.folder / name).mkdir(exist_ok=True)
        paths = []
        for view, frame in views.items():
            paths.append(self.folder / name / form.format(view))
            frame.to_csv(paths[-1])
        return paths

    def predict(self, views, form="{}.csv", words=()):
        """Return the predictions of the command line by sample."""
        rows = commands.predicted(self.saved, *self.write("new", views, form), "--id", "who", *words)
        return pd.Series({row["id"]: row["prediction"] for row in rows}).sort_index()

    def check(self, views, form="{}.csv"):
        """Compare what Python and the command line predict with what they should."""
        pd.testing.assert_series_equal(self.predict(views, form), self.expected)
        X = cs.Views(views, join="outer")
        found = pd.DataFrame(self.model.decision_function(X), index=X.sample_names)
        pd.testing.assert_frame_equal(found.sort_index(), self.decisions.sort_index(), check_names=False)

    def refused(self, views, form="{}.csv"):
        """Return the sentences by which Python and the command line refuse samples."""
        with pytest.raises(ValueError) as error:
            self.model.predict(views)
        return str(error.value), commands.refused("predict", self.saved, *self.write("new", views, form), "--id", "who")


@pytest.fixture(scope="module", params=["breast cancer", "PAM50", "breast TCGA"])
def study(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    if request.param == "breast cancer":
        return Study(load_breast_cancer_views(), folder, np.arange(0, 400, 2), np.arange(400, 460))
    home = request.getfixturevalue("data_folder")
    bunch = (fetch_tcga_brca if request.param == "PAM50" else fetch_breast_tcga)(data_home=home)
    train, test = bunch.splits[0]
    if request.param == "breast TCGA":  # the test samples lack a view, so some of the training samples are tested
        train, test = train[::2], train[1::2]
    return Study(bunch, folder, train[:200], test[:60])


def changed(study, view, change):
    return {**study.test, view: change(study.test[view])}


def test_predictions_are_good(study):
    """So that a wrong order would show."""
    assert (study.expected == study.y_test.sort_index()).mean() > 0.7
    assert study.model.score(study.test, study.y_test) > 0.7


def test_order_of_genes(study):
    study.check({view: frame[frame.columns[::-1]] for view, frame in study.test.items()})


def test_order_of_patients(study):
    first, *others = study.test
    study.check({first: study.test[first], **{view: study.test[view].iloc[::-1] for view in others}})


def test_order_of_files_and_targets(study):
    study.check({view: study.test[view] for view in reversed(study.test)})
    mixed = study.y_train.iloc[np.random.default_rng(0).permutation(len(study.y_train))]
    again = cs.CoRegularizedRidgeClassifier("linear").fit(study.train, mixed)
    np.testing.assert_array_equal(again.decision_function(study.test), study.decisions.squeeze("columns"))


def test_a_missing_gene_is_refused_by_name_or_filled_with_a_count(study):
    view = next(iter(study.test))
    gene = study.test[view].columns[3]
    lacking = changed(study, view, lambda frame: frame.drop(columns=gene))
    for said in study.refused(lacking):
        assert f"View '{view}' has no column '{gene}'" in said
        assert f"(1 of {study.test[view].shape[1]} columns are missing)" in said
    mean = study.train[view][gene].mean()
    filled = changed(study, view, lambda frame: frame.assign(**{gene: mean}))
    code, said = commands.ended(
        "predict", study.saved, *study.write("new", lacking), "--id", "who", "--missing-columns", "fill"
    )
    assert code == 0
    assert f"View '{view}' lacks 1 of {study.test[view].shape[1]} columns ({gene})" in said
    with pytest.warns(UserWarning, match="lacks 1 of"):
        found = study.predict(lacking, words=("--missing-columns", "fill"))
    pd.testing.assert_series_equal(found, study.predict(filled))


def test_other_columns_do_not_matter(study):
    view = next(iter(study.test))
    words = ["a", "b"] * (len(study.test[view]) // 2)
    extra = changed(study, view, lambda frame: frame.assign(centre=words, remark="seen"))
    pd.testing.assert_series_equal(study.predict(extra), study.expected)


def test_unreadable_cells_are_shown(study):
    view = next(iter(study.test))
    gene = study.test[view].columns[0]
    broken = study.test[view].astype({gene: object})
    broken.iloc[[2, 5], 0] = "n.d."
    sentence = f"column '{gene}' has numbers, and 2 cells that cannot be read as numbers: 'n.d.'"
    assert all(sentence in said for said in study.refused({**study.test, view: broken}))


def test_shared_symbols_are_told_apart_by_view(study, tmp_path):
    """Two views have the same columns, as expression and methylation of the same genes do."""
    view, other, *_ = study.train
    width = min(study.train[view].shape[1], study.train[other].shape[1])

    def shared(views):
        columns = [f"g{k}" for k in range(width)]
        return {name: views[name].iloc[:, :width].set_axis(columns, axis=1) for name in (view, other)}

    train, test = shared(study.train), shared(study.test)
    files = study.write("shared", {**train, "labels": study.y_train.to_frame()})
    saved = tmp_path / "model.cons"
    commands.run("fit", *files, "-e", MODEL, "--id", "who", "-y", "kind", "--save", saved)
    turned = {name: test[name][test[name].columns[::-1]] for name in (other, view)}
    rows = [
        {row["id"]: row["prediction"] for row in commands.predicted(saved, *study.write("new", views), "--id", "who")}
        for views in (test, turned)
    ]
    assert rows[0] == rows[1]
    said = commands.refused("predict", saved, *study.write("odd", test, "file_of_{}.csv"), "--id", "who")
    assert "the model knows it in both. Name the file after its view" in said


def test_a_file_without_some_genes_is_not_taken_for_another_view(study, tmp_path):
    """The second view has all genes of the first but one, and a file of unknown name lacks that one."""
    view, other, *_ = study.train
    width = min(study.train[view].shape[1], study.train[other].shape[1])
    columns = [f"g{k}" for k in range(width)]
    train = {name: study.train[name].iloc[:, :width].set_axis(columns, axis=1) for name in (view, other)}
    train[other] = train[other].drop(columns="g0")
    files = study.write("nearly", {**train, "labels": study.y_train.to_frame()})
    saved = tmp_path / "model.cons"
    commands.run("fit", *files, "-e", MODEL, "--id", "who", "-y", "kind", "--save", saved)
    lacking = study.test[view].iloc[:, :width].set_axis(columns, axis=1).drop(columns="g0")
    said = commands.refused("predict", saved, *study.write("odd", {"samples": lacking}), "--id", "who")
    assert "the model knows it in both. Name the file after its view" in said
    code, said = commands.ended("predict", saved, *study.write("odd", {view: lacking}), "--id", "who")
    assert code == 1
    assert f"Error: View '{view}' has no column 'g0'" in said


def test_files_of_any_name(study):
    study.check(study.test, "{}_batch_2.csv")


def test_ids_as_numbers_and_as_text(study, tmp_path):
    names = {name: k for k, name in enumerate(study.y_test.index, start=1)}
    first, *others = study.test
    views = {view: frame.rename(index=names) for view, frame in study.test.items()}
    paths = study.write("new", {view: views[view] for view in others})
    views[first].reset_index().to_parquet(tmp_path / f"{first}.parquet")  # integers; in CSV files they are text
    rows = commands.predicted(study.saved, tmp_path / f"{first}.parquet", *paths, "--id", "who")
    found = {row["id"]: row["prediction"] for row in rows}
    assert [found[str(names[name])] for name in study.expected.index] == study.expected.tolist()


def test_samples_without_any_view_are_left_out_by_name(study):
    nobody = {
        view: pd.concat([frame, frame.iloc[:1].rename(lambda name: "nobody") * np.nan])
        for view, frame in study.test.items()
    }
    with pytest.warns(UserWarning, match="have no view at all and are left out: 'nobody'"):
        found = study.predict({view: frame.rename_axis("who") for view, frame in nobody.items()})
    pd.testing.assert_series_equal(found, study.expected)
    with pytest.raises(ValueError, match="Sample 'nobody' has no view at all"):
        cs.Views(nobody)


@pytest.mark.parametrize("sparse", [False, True])
def test_annotated_matrices(study, sparse, tmp_path):
    """AnnData and MuData: genes and patients in another order, several layers, sparse matrices."""
    anndata, mudata = (pytest.importorskip(name, reason=f"{name} is not installed") for name in ("anndata", "mudata"))
    import scipy.sparse as sp

    def annotated(frame, seed):
        rng = np.random.default_rng(seed)
        frame = frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]
        values = sp.csr_matrix(frame.to_numpy()) if sparse else frame.to_numpy()
        obs, var = pd.DataFrame(index=frame.index.rename(None)), pd.DataFrame(index=frame.columns.astype(str))
        return anndata.AnnData(values, obs, var, layers={"twice": values * 2})

    parts = {view: annotated(frame, seed) for seed, (view, frame) in enumerate(study.test.items())}
    whole = mudata.MuData(parts)
    for X in (cs.as_views(whole), cs.Views(parts)):
        found = pd.DataFrame(study.model.decision_function(X), index=X.sample_names)
        pd.testing.assert_frame_equal(found.loc[study.decisions.index], study.decisions, check_names=False)
    whole.write(tmp_path / "study.h5mu")
    rows = commands.predicted(study.saved, tmp_path / "study.h5mu", "--id", "obs_names")
    assert {row["id"]: row["prediction"] for row in rows} == study.expected.to_dict()
    view, data = next(iter(parts.items()))
    data.write(tmp_path / f"{view}.h5ad")
    alone = commands.predicted(study.saved, tmp_path / f"{view}.h5ad", "--id", "obs_names")
    assert {row["id"]: row["prediction"] for row in alone} == study.predict({view: study.test[view]}).to_dict()


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strategies.generators)
def test_any_order_of_rows_columns_files_and_file_names(study, rng):
    def mixed(names):
        names = list(names)
        return [names[k] for k in rng.permutation(len(names))]

    views = {
        view: study.test[view].loc[mixed(study.test[view].index), mixed(study.test[view].columns)]
        for view in mixed(study.test)
    }
    study.check(views, rng.choice(["{}.csv", "of_{}.csv", "x{}.csv"]))
