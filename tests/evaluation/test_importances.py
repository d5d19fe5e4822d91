"""Importance of columns: coefficients against literal sums, permutation against scikit-learn, screening, groups."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import consilience as cs
from consilience import Views, feature_importances
from consilience.datasets import make_views
from consilience.kernels import Linear, Mahalanobis, Spectrum, normalize, standardize

X, y = make_views(240, informative=2, noise=1, n_features=6, missing=0.0, random_state=0)
LABELS = np.array(["healthy", "ill"])[y]
TRAIN, TEST = np.arange(0, 240, 2), np.arange(1, 240, 2)
RNG = np.random.default_rng(0)
PRICE = X["informative0"][:, 0] * 5 + X["informative1"][:, 3] + 100


def ridge(kernel="linear", **options):
    return cs.CoRegularizedRidgeClassifier(kernel, alpha=0.01, **options)


def scaled(estimator):
    return make_pipeline(cs.PerView(StandardScaler()), estimator)


def coefficient_table(found):
    """Coefficients by view and name."""
    return {(v, n): c for v, n, c in zip(found.views, found.names, found.coefficients, strict=True)}


# -- coefficients
LINEAR = {
    "linear": Linear(),
    "weighted": 0.5 * Linear(),
    "sum and a constant": Linear() + 2.0 * Linear() + 1.0,
    "on columns": Linear().on([0, 3]) + 0.1 * Linear().on(slice(2, 5)),
    "mahalanobis": Mahalanobis(np.diag([1.0, 2, 3, 4, 5, 6]) + 0.1),
    "standardized": standardize(Linear()),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("form", ["dense", "sparse", "some missing"])
def test_coefficients_are_the_change_by_a_standard_deviation_of_one_column(name, form):
    data = X if form != "sparse" else Views({v: sp.csr_array(X[v] * (np.abs(X[v]) > 0.3)) for v in X.names})
    if form == "some missing":
        data = Views(X, mask=RNG.random((240, 3)) > np.array([0.3, 0.0, 0.3]))
    model = ridge(LINEAR[name], view_weights=[0.5, 0.3, 0.2]).fit(data[TRAIN], LABELS[TRAIN])
    new = data[TEST]
    found = feature_importances(model, new)
    assert found.method == "coefficients"
    table = coefficient_table(found)
    assert len(table) == len(found) == 18
    for v in X.names:
        rows = np.flatnonzero(new.present(v))
        block = new[v][rows].toarray() if form == "sparse" else new[v][rows]
        for j in (0, 3, 5):
            base = np.zeros((2, 6))
            base[1, j] = block[:, j].std()  # the literal meaning: one column grows, nothing else changes
            alone = Views({v: base if form != "sparse" else sp.csr_array(base)})
            step = np.diff(model.view_decision_function(alone)[:, X.names.index(v)])
            weight = model.view_weights_[X.names.index(v)]
            np.testing.assert_allclose(table[v, str(j)], weight * step, atol=1e-9)
    np.testing.assert_allclose(found.importances, np.abs(found.coefficients[:, 0]))
    assert (np.diff(found.importances) <= 0).all()


def test_coefficients_are_dual_sums_over_the_training_samples():
    model = ridge().fit(X[TRAIN], LABELS[TRAIN])
    table = coefficient_table(feature_importances(model, X[TEST]))
    for v, name in enumerate(X.names):
        for j in range(6):
            w = sum(a * x[j] for a, x in zip(model.dual_coef_[v][:, 0], model.X_fit_[name], strict=True))
            expected = model.view_weights_[v] * w * X[TEST][name][:, j].std()
            np.testing.assert_allclose(table[name, str(j)], [expected], rtol=1e-8)


def test_coefficients_of_scaled_and_unscaled_columns_are_equal():
    factors = {v: RNG.uniform(0.1, 100, size=6) for v in X.names}
    other = Views({v: X[v] * factors[v] + 3 for v in X.names})
    first, second = (
        feature_importances(scaled(ridge()).fit(data[TRAIN], LABELS[TRAIN]), data[TEST]) for data in (X, other)
    )
    assert first.names == second.names
    np.testing.assert_allclose(first.coefficients, second.coefficients, rtol=1e-6)


def test_coefficients_of_regression_are_in_the_units_of_the_target():
    model = TransformedTargetRegressor(
        scaled(cs.CoRegularizedRidge("linear", alpha=1e-8)), transformer=StandardScaler()
    )
    found = feature_importances(model.fit(X, PRICE), X)
    table = coefficient_table(found)
    assert table["informative0", "0"] == pytest.approx(5 * X["informative0"][:, 0].std(), rel=1e-3)
    assert table["informative1", "3"] == pytest.approx(X["informative1"][:, 3].std(), rel=1e-2)
    assert set(found.names[:2]) == {"0", "3"}
    assert "Change of the prediction" in found.meaning
    curved = TransformedTargetRegressor(scaled(cs.CoRegularizedRidge("linear")), func=np.log, inverse_func=np.exp)
    assert np.isfinite(feature_importances(curved.fit(X, PRICE), X).importances).all()


@pytest.mark.parametrize("model", [
    cs.EarlyFusion(LogisticRegression()), cs.CoRegularizedSVC("linear"), cs.MultipleKernelRidgeClassifier("linear"),
    cs.MultipleKernelRidgeClassifier([Linear(), 0.5 * Linear().on([1, 3])]),
    cs.ViewMetricRidgeClassifier("linear"), cs.MaxMarginClassifier(kernel="linear"),
    cs.CoRegularizedRidgeClassifier("linear", n_components=5), cs.CoRegularizedRidgeClassifierCV("linear"),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_linear_estimators_have_coefficients_that_give_their_scores(model):
    model = clone(model).fit(X[TRAIN], LABELS[TRAIN])
    found = feature_importances(model, X[TEST])
    assert found.method == "coefficients"
    added = sum(
        (X[TEST][v][:, int(n)] / X[TEST][v][:, int(n)].std()) * c[0] for (v, n), c in coefficient_table(found).items()
    )
    scores = model.decision_function(X[TEST])
    np.testing.assert_allclose(added - added[0], scores - scores[0], atol=1e-6 * np.abs(scores).max())
    assert "towards class 'ill'" in found.meaning


def test_coefficients_of_several_classes_and_of_groups():
    data, labels = make_views(120, n_classes=3, informative=1, noise=1, n_features=4, random_state=1)
    labels = np.array(["a", "b", "c"])[labels]
    model = ridge().fit(data, labels)
    found = feature_importances(model, data)
    assert found.outputs == ("a", "b", "c")
    np.testing.assert_allclose(found.importances, np.linalg.norm(found.coefficients, axis=1))
    assert list(found.to_frame().columns[3:6]) == ["coefficient of a", "coefficient of b", "coefficient of c"]
    grouped = feature_importances(
        model, data, groups={"informative0": {"pair": [0, 1]}, "noise0": ["p", "p", "q", "p"]}
    )
    assert sorted(zip(grouped.views, grouped.names, strict=True)) == [
        ("informative0", "2"), ("informative0", "3"), ("informative0", "pair"), ("noise0", "p"), ("noise0", "q"),
    ]  # fmt: skip
    table = {(v, n): c for v, n, c in zip(found.views, found.names, found.coefficients, strict=True)}
    added = sum(
        np.outer(data["informative0"][:, j] / data["informative0"][:, j].std(), table["informative0", str(j)])
        for j in (0, 1)
    )
    place = grouped.names.index("pair")
    assert grouped.importances[place] == pytest.approx(np.sqrt(added.var(axis=0).sum()))
    assert np.isnan(grouped.coefficients[place]).all()


def test_kernels_that_are_not_linear_have_no_coefficients():
    for kernel in ("rbf", normalize(Linear()), {"noise0": "rbf", "informative0": "linear", "informative1": "linear"}):
        model = ridge(kernel).fit(X[TRAIN], LABELS[TRAIN])
        with pytest.raises(TypeError, match="has no coefficients of columns"):
            feature_importances(model, X[TEST], method="coefficients")
        with pytest.raises(TypeError, match="Permutation needs `y`"):
            feature_importances(model, X[TEST])
    product = cs.MaxMarginClassifier(kernel="linear", combine="product").fit(X[TRAIN], LABELS[TRAIN])
    assert feature_importances(product, X[TEST], LABELS[TEST], n_repeats=1).method == "permutation"


# -- permutation
def test_permutation_agrees_with_scikit_learn_on_the_concatenated_table():
    model = cs.EarlyFusion(make_pipeline(StandardScaler(), LogisticRegression())).fit(X[TRAIN], LABELS[TRAIN])
    options = {"n_repeats": 30, "scoring": "neg_log_loss"}
    found = feature_importances(model, X[TEST], LABELS[TEST], method="permutation", max_scores=10_000, **options)
    table = np.hstack([X[v] for v in X.names])
    expected = permutation_importance(model.estimator_, table[TEST], LABELS[TEST], random_state=1, **options)
    place = [6 * X.names.index(v) + int(n) for v, n in zip(found.views, found.names, strict=True)]
    mean, error = expected.importances_mean[place], expected.importances_std[place] / np.sqrt(30)
    z = (found.importances - mean) / np.hypot(error, found.standard_errors)
    assert np.abs(z).max() < 4
    assert np.corrcoef(found.importances, mean)[0, 1] > 0.99
    np.testing.assert_allclose(found.standard_errors, error, rtol=0.5)


def test_permutation_is_a_literal_shuffle_of_one_column():
    model = scaled(ridge("rbf")).fit(X[TRAIN], LABELS[TRAIN])
    found = feature_importances(model, X[TEST], LABELS[TEST], view="informative1", n_repeats=3, random_state=5)
    assert found.score == model.score(X[TEST], LABELS[TEST])
    rng = np.random.default_rng([5, 1])
    orders = [rng.permutation(120) for _ in range(3)]
    for name, importance, error in zip(found.names, found.importances, found.standard_errors, strict=True):
        lost = []
        for order in orders:
            block = X[TEST]["informative1"].copy()
            block[:, int(name)] = block[order, int(name)]
            changed = Views({**{v: X[TEST][v] for v in X.names}, "informative1": block})
            lost.append(found.score - model.score(changed, LABELS[TEST]))
        assert importance == pytest.approx(np.mean(lost))
        assert error == pytest.approx(np.std(lost, ddof=1) / np.sqrt(3))


MODELS = {
    "pipeline": lambda: scaled(ridge("rbf")),
    "search": lambda: GridSearchCV(scaled(ridge("rbf")), {"coregularizedridgeclassifier__alpha": [0.1, 0.01]}, cv=2),
    "calibrated, a model per fold": lambda: CalibratedClassifierCV(scaled(ridge("rbf")), cv=2),
    "late fusion": lambda: cs.LateFusion(LogisticRegression()),
    "online": lambda: scaled(cs.KernelPerceptron("rbf")),
}


@pytest.mark.parametrize("name", MODELS)
def test_views_that_tell_the_class_have_the_important_columns(name):
    model = MODELS[name]().fit(X[TRAIN], LABELS[TRAIN])
    found = feature_importances(model, X[TEST], LABELS[TEST], groups={v: np.zeros(6) for v in X.names}, n_repeats=10)
    assert len(found) == 3
    assert found.views[-1] == "noise0"
    assert found.importances[0] > 5 * abs(found.importances[-1])


@pytest.mark.parametrize("form", ["sparse", "missing", "gaps"])
def test_shuffles_of_sparse_and_missing_views(form):
    if form == "sparse":
        dense = Views({v: np.where(np.abs(X[v]) > 0.3, X[v], 0.0) for v in X.names})
        data = Views({v: sp.csr_array(dense[v]) for v in X.names})
        models = [ridge("rbf").fit(part[TRAIN], LABELS[TRAIN]) for part in (data, dense)]
        one, two = (
            feature_importances(m, part[TEST], LABELS[TEST]) for m, part in zip(models, (data, dense), strict=True)
        )
        assert one.names == two.names
        np.testing.assert_allclose(one.importances, two.importances, atol=1e-12)
        return
    if form == "missing":
        data = Views(X, mask=RNG.random((240, 3)) > np.array([0.4, 0.0, 0.4]))
        model = ridge("rbf").fit(data[TRAIN], LABELS[TRAIN])
        found = feature_importances(model, data[TEST], LABELS[TEST])
        assert found.n_samples["informative0"] == data[TEST].present("informative0").sum() < 120
        assert found.n_samples["informative1"] == 120
        return
    holed = {v: np.where(RNG.random((240, 6)) < 0.1, np.nan, X[v]) for v in X.names}
    model = make_pipeline(cs.PerView(["impute", "standardize"]), ridge("rbf")).fit(Views(holed)[TRAIN], LABELS[TRAIN])
    found = feature_importances(model, Views(holed)[TEST], LABELS[TEST], max_scores=40)
    assert np.isfinite(found.importances).all()


def test_frames_categories_strings_unlabeled_samples_and_series():
    rng = np.random.default_rng(0)
    sex = np.where(y == 1, np.where(rng.random(240) < 0.9, "f", "m"), np.where(rng.random(240) < 0.9, "m", "f"))
    clinic = pd.DataFrame({"age": rng.normal(size=240), "sex": pd.Categorical(sex)})
    genes = pd.DataFrame(X["noise0"], columns=[f"g{j}" for j in range(6)])
    data = Views({"clinic": clinic, "genes": genes, "text": [s * 2 for s in sex]})
    model = ridge({"clinic": "rbf", "genes": "rbf", "text": Spectrum(1)}).fit(data[TRAIN], LABELS[TRAIN])
    target = pd.Series(LABELS, dtype=object)[TEST]
    target.iloc[:3] = None
    found = feature_importances(model, data[TEST], target.to_numpy())
    assert {"age", "sex", "text", "g0"} <= set(found.names)
    assert "sex=f" not in found.names
    assert set(found.names[:2]) == {"sex", "text"}
    assert found.n_samples == {"clinic": 117, "genes": 117, "text": 117}
    shown = str(found)
    assert "standard_error" in shown
    assert "sex" in shown.splitlines()[2] + shown.splitlines()[3]
    assert shown.startswith("Loss of the score when a column is shuffled")
    frame = found.to_frame()
    assert list(frame.columns) == ["view", "feature", "importance", "standard_error", "n_columns", "is_block"]
    assert frame.set_index("feature").n_columns["sex"] == 2


def test_one_sample_has_no_importance_and_one_class_none_to_lose():
    model = ridge("rbf").fit(X[TRAIN], LABELS[TRAIN])
    assert np.isnan(feature_importances(model, X[:1], LABELS[:1]).importances).all()
    ill = np.flatnonzero(LABELS == "ill")[:10]
    assert np.isfinite(feature_importances(model, X[ill], LABELS[ill]).importances).all()


# -- many columns
def many(p, n=200, informative=(17, 4242), seed=0):
    """A view of p columns of which two decide, and a small view of noise."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, p))
    labels = np.where(3 * Z[:, informative[0]] + 2 * Z[:, informative[1]] > 0, "yes", "no")
    return Views({"genes": Z, "clinic": rng.normal(size=(n, 3))}), labels


class TwoColumns(cs.EarlyFusion):
    """Early fusion that counts how often it predicts."""

    calls = 0

    def predict(self, X):
        TwoColumns.calls += 1
        return super().predict(X)


def test_halving_finds_columns_among_thousands_without_testing_each():
    data, labels = many(8_000)
    model = TwoColumns(LogisticRegression(l1_ratio=1.0, solver="liblinear", C=0.3)).fit(data, labels)
    TwoColumns.calls = 0
    found = feature_importances(model, data, labels, method="permutation", n_repeats=3, max_scores=400)
    assert TwoColumns.calls <= 410
    assert found.names[:2] == ("17", "4242")
    assert not found.is_block[:2].any()
    assert sum(len(own) for own in found.columns) == 8_003  # every column is in one row
    assert found.is_block.any()
    assert "lost too little to look closer" in str(found)
    exact = feature_importances(model, data, labels, method="permutation", n_repeats=3, view="genes",
                                groups={"first": [17], "rest": np.setdiff1d(np.arange(8_000), [17])})  # fmt: skip
    assert exact.importances[exact.names.index("first")] == pytest.approx(found.importances[0])


def test_screening_and_testing_each_column_agree():
    data, labels = many(64, informative=(5, 40))
    model = scaled(ridge("rbf")).fit(data, labels)
    every = feature_importances(model, data, labels, n_repeats=4, max_scores=10_000)
    screened = feature_importances(model, data, labels, n_repeats=4, max_scores=4 * 30)
    assert not every.is_block.any()
    table = {(v, n): i for v, n, i in zip(every.views, every.names, every.importances, strict=True)}
    single = [k for k in range(len(screened)) if not screened.is_block[k]]
    assert {screened.names[k] for k in single} >= {"5", "40"}
    for k in single:
        assert screened.importances[k] == pytest.approx(table[screened.views[k], screened.names[k]])


def test_importances_do_not_depend_on_the_order_of_views_or_samples_named():
    model = scaled(ridge("rbf")).fit(X[TRAIN], LABELS[TRAIN])
    found = feature_importances(model, X[TEST], LABELS[TEST], n_repeats=2)
    other = X[TEST][["noise0", "informative1", "informative0"]]
    assert feature_importances(model, other, LABELS[TEST], n_repeats=2).score == found.score
    names = np.array([f"s{i}" for i in range(240)])
    named = Views(X, sample_names=names)
    shuffled = pd.Series(LABELS[TEST], index=names[TEST]).sample(frac=1.0, random_state=0)
    again = feature_importances(model, named[TEST], shuffled, n_repeats=2)
    np.testing.assert_allclose(again.importances, found.importances)


# -- what is refused
@pytest.mark.parametrize(("options", "message"), [
    ({"view": "rna"}, "`view` must name views of the samples, 'informative0', 'informative1', 'noise0'; got 'rna'"),
    ({"groups": {"p": [0]}}, "`groups` must be a dict by view, because there are 3"),
    ({"groups": [0] * 6}, "`groups` must be a dict by view"),
    ({"groups": {"p": ["TP53"]}, "view": "noise0"}, "puts the column 'TP53' into 'p', but view 'noise0' has 6 columns"),
    ({"groups": {"p": [6]}, "view": "noise0"}, "puts the column 6 into 'p'"),
    ({"groups": {"p": []}, "view": "noise0"}, "`groups` has no column in 'p'"),
    ({"groups": [0, 1], "view": "noise0"}, "must have a label for each of its 6 columns; got the shape"),
    ({"groups": {"noise0": [0] * 6}, "view": "informative0"}, "has the view 'noise0', which `view` does not choose"),
    ({"method": "shap"}, "The 'method' parameter"),
    ({"n_repeats": 0}, "The 'n_repeats' parameter"),
])  # fmt: skip
def test_options_that_are_not_meant(options, message):
    model = ridge("rbf").fit(X[TRAIN], LABELS[TRAIN])
    with pytest.raises(ValueError, match=message):
        feature_importances(model, X[TEST], LABELS[TEST], **options)


def test_other_models_and_lengths_are_refused():
    model = ridge("rbf").fit(X[TRAIN], LABELS[TRAIN])
    with pytest.raises(ValueError, match="X has 120 samples, but y has 3"):
        feature_importances(model, X[TEST], LABELS[:3])
    text = ridge({"t": Spectrum(1)}).fit(Views(t=["a", "b"] * 9), ["x", "y"] * 9)
    with pytest.raises(ValueError, match="view 't' has none"):
        feature_importances(text, Views(t=["a", "b"]), ["x", "y"], groups={"t": {"p": [0]}})


# -- display
def test_the_display():
    pytest.importorskip("matplotlib").use("agg")
    model = scaled(ridge()).fit(X[TRAIN], LABELS[TRAIN])
    display = cs.FeatureImportancesDisplay.from_estimator(model, X[TEST], max_rows=7)
    assert sum(len(bars) for bars in display.bars_) == 7
    found = display.importances
    widths = {bar.get_y() + bar.get_height() / 2: bar.get_width() for bars in display.bars_ for bar in bars}
    np.testing.assert_allclose([widths[k] for k in sorted(widths)], found.coefficients[:7, 0])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == list(found.names[:7])
    rbf = scaled(ridge("rbf")).fit(X[TRAIN], LABELS[TRAIN])
    display = cs.FeatureImportancesDisplay.from_estimator(rbf, X[TEST], LABELS[TEST], view="noise0", n_repeats=2)
    assert len(display.bars_) == 1
    assert display.ax_.get_xlabel() == "loss of score when shuffled"
    assert cs.FeatureImportancesDisplay(found).plot(ax=display.ax_).ax_ is display.ax_


def test_regression_by_permutation():
    model = TransformedTargetRegressor(scaled(cs.CoRegularizedRidge("rbf")), transformer=StandardScaler())
    found = feature_importances(model.fit(X[TRAIN], PRICE[TRAIN]), X[TEST], PRICE[TEST], scoring="r2")
    assert (found.views[0], found.names[0]) == ("informative0", "0")
    plain = feature_importances(cs.LateFusion(Ridge()).fit(X, PRICE), X, PRICE, n_repeats=1)
    assert np.isnan(plain.standard_errors).all()
    assert found.meaning.startswith("Loss of r2")
    spread = make_pipeline(cs.PerView(FunctionTransformer(np.tanh)), cs.CoRegularizedRidge("linear")).fit(X, PRICE)
    assert feature_importances(spread, X).method == "coefficients"  # of the columns after the step
