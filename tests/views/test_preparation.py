"""Preparation of views: recipes by name, effects of batches, and that nothing of test samples leaks into a fold."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import f_oneway, linregress
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_classif, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import consilience as cs
from consilience import LateFusion, PerView, RemoveBatch, Views
from consilience.views.recipes import LogColumns, MostAssociated, MostVariable

N = 60
rng = np.random.default_rng(0)
A = rng.normal(size=(N, 12)) * np.arange(1, 13) + 5 * rng.normal(size=12)
COUNTS = rng.poisson(3, size=(N, 5)).astype(float)
CODES = rng.integers(0, 3, N)
LABELS = np.array(["x", "y", "z"])[CODES]
TARGET = A[:, 3] / 4 - A[:, 7] + rng.normal(size=N)
BATCH = np.array(["p", "q", "r", "s"])[rng.integers(0, 4, N)]
HOLED = np.where(rng.random(A.shape) < 0.2, np.nan, A)
TEXT = ["red fish", "blue fish", "red bird"] * 20
FRAME = pd.DataFrame(A, columns=[f"g{k}" for k in range(12)], index=[f"s{i}" for i in range(N)])


# -- recipes
EQUAL = {
    "standardize": StandardScaler(),
    "impute": SimpleImputer(),
    "quantile": QuantileTransformer(n_quantiles=N, output_distribution="normal", random_state=0),
    "top_k:4": SelectKBest(f_classif, k=4),
    "passthrough": "passthrough",
}


@pytest.mark.parametrize("recipe", EQUAL)
def test_a_recipe_is_the_transformer_of_its_name(recipe):
    X = Views(a=HOLED if recipe == "impute" else A, t=TEXT)
    np.testing.assert_array_equal(
        PerView(recipe).fit_transform(X, LABELS)["a"], PerView({"a": EQUAL[recipe]}).fit_transform(X, LABELS)["a"]
    )


def test_steps_are_applied_in_order_and_columns_keep_their_names():
    X = Views(c=pd.DataFrame(COUNTS, columns=list("abcde")), t=TEXT)
    prepare = PerView(["log", "variance:2", "standardize"])
    logs = np.log1p(COUNTS)
    kept = np.sort(np.argsort(-logs.var(axis=0), kind="stable")[:2])
    Z = prepare.fit_transform(X)
    np.testing.assert_allclose(Z["c"], StandardScaler().fit_transform(logs[:, kept]))
    assert Z.feature_names["c"] == tuple("abcde"[k] for k in kept)
    assert Z["t"] is X["t"]
    assert prepare.fit(X).transform(X) == Z
    named = PerView({"a": ["top_k:3", PCA(2)], "t": [TfidfVectorizer(), "top_k:2", "standardize"]})
    both = named.fit_transform(Views(a=FRAME, t=TEXT), LABELS)
    assert both["a"].shape == (N, 2)
    assert both.kind("t") == "sparse"
    assert set(both.feature_names["t"]) <= {"bird", "blue", "fish", "red"}
    assert both.sample_names.tolist() == list(FRAME.index)
    other = clone(named).set_params(transformers__a="variance:5")
    assert other.fit_transform(Views(a=FRAME, t=TEXT), LABELS)["a"].shape == (N, 5)


def test_recipes_by_name_can_be_searched():
    model = make_pipeline(PerView("top_k:1"), LateFusion(LogisticRegression()))
    search = GridSearchCV(model, {"perview__transformers": ["top_k:1", ["top_k:8", "standardize"]]}, cv=2)
    assert search.fit(Views(a=A), A[:, 9] > 0).best_params_ in search.cv_results_["params"]


# -- the columns that are kept
def naive_scores(X, y):
    """F of each column from its own values: scipy's tests on the cells that are there."""
    scores = []
    for column in X.T:
        there = ~np.isnan(column)
        if y.dtype.kind == "f":
            r = linregress(column[there], y[there]).rvalue
            scores.append(r**2 / (1 - r**2) * (there.sum() - 2))
        else:
            scores.append(f_oneway(*(column[there & (y == c)] for c in np.unique(y))).statistic)
    return np.array(scores)


@pytest.mark.parametrize("y", [LABELS, CODES, TARGET], ids=["strings", "integers", "numbers"])
@pytest.mark.parametrize("X", [A, HOLED, A.astype(np.float32)], ids=["whole", "holes", "single"])
def test_association_agrees_with_a_test_column_by_column(X, y):
    ranked = MostAssociated(4).fit(X, y)
    np.testing.assert_allclose(
        ranked.scores_, naive_scores(X.astype(float), y), rtol=1e-5 if X.dtype != float else 1e-9
    )
    np.testing.assert_array_equal(np.flatnonzero(ranked.support_), np.sort(np.argsort(ranked.pvalues_)[:4]))


@pytest.mark.parametrize("k", [1, 5, 11])
def test_columns_are_those_of_scikit_learn(k):
    best = SelectKBest(f_classif, k=k).fit(A, LABELS)
    ours = MostAssociated(k).fit(A, LABELS)
    np.testing.assert_array_equal(ours.support_, best.get_support())
    np.testing.assert_allclose(ours.scores_, best.scores_)
    np.testing.assert_allclose(ours.pvalues_, best.pvalues_)
    best = SelectKBest(f_regression, k=k).fit(A, TARGET)
    np.testing.assert_array_equal(MostAssociated(k).fit(A, TARGET).support_, best.get_support())
    for X in (A, HOLED):
        variances = VarianceThreshold(1e-9).fit(X).variances_
        ours = MostVariable(k).fit(X)
        np.testing.assert_allclose(ours.variances_, variances)
        np.testing.assert_array_equal(np.flatnonzero(ours.support_), np.sort(np.argsort(-variances)[:k]))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_views_stay_sparse_and_give_the_same(kind, monkeypatch):
    dense = np.where(rng.random(A.shape) < 0.6, 0.0, A)
    sparse = kind(dense)
    holes = dense.copy()
    holes[[3, 8], [2, 5]] = np.nan
    selections = [
        (recipe, table, y, PerView(recipe).fit_transform(Views(a=table), y)["a"])
        for recipe in ("standardize", "variance:4", "top_k:4")
        for table in (dense, holes)
        for y in (LABELS, TARGET)
    ]
    monkeypatch.setattr(kind, "toarray", lambda *given: pytest.fail("made dense"))
    monkeypatch.setattr(kind, "todense", lambda *given: pytest.fail("made dense"))
    ours = [PerView(recipe).fit_transform(Views(a=kind(table)), y) for recipe, table, y, _ in selections]
    assert all(Z.kind("a") == "sparse" for Z in ours)
    monkeypatch.undo()
    for Z, (recipe, table, _, values) in zip(ours, selections, strict=True):
        if recipe == "standardize":
            values = table / np.nanstd(table, axis=0)
        np.testing.assert_allclose(Z["a"].toarray(), values)
    np.testing.assert_allclose(PerView("log").fit_transform(Views(a=abs(sparse)))["a"].toarray(), np.log1p(abs(dense)))


def test_ties_constant_columns_and_too_many():
    X = np.column_stack([np.full(N, 0.1), A[:, 3], A[:, 3], A[:, 0], np.full(N, np.nan), CODES])
    X[0, 4] = 7.0
    for y in (LABELS, TARGET):
        assert MostAssociated(6).fit(X, y).support_.all()
        assert not MostAssociated(4).fit(X, y).support_[[0, 4]].any()
        assert MostAssociated(5).fit(X, y).support_[0]  # of the columns without a score the first
    twice = np.column_stack([A[:, 3], A[:, 3]])
    for chosen in (MostAssociated(1).fit(twice, TARGET), MostVariable(1).fit(twice)):
        assert chosen.support_.tolist() == [True, False]
    assert MostAssociated(1).fit(X, LABELS).support_[5]  # the class itself
    X = Views(a=FRAME)
    for recipe in ("top_k:12", "top_k:99", "variance:12"):
        Z = PerView(recipe).fit_transform(X, LABELS)
        assert Z == X
        assert Z.feature_names == X.feature_names


def test_the_target_of_a_selection():
    whole = CODES.astype(float)
    assert not np.allclose(
        MostAssociated(2).fit(A, whole).scores_, MostAssociated(2, "regression").fit(A, whole).scores_
    )
    np.testing.assert_allclose(MostAssociated(2, "regression").fit(A, whole).scores_, f_regression(A, whole)[0])
    two = np.column_stack([TARGET, A[:, 5]])
    several = MostAssociated(3).fit(A, two)
    np.testing.assert_allclose(
        np.delete(several.scores_, 5),
        np.delete(np.maximum(f_regression(A, TARGET)[0], f_regression(A, two[:, 1])[0]), 5),
    )
    part = [label if k % 3 else None for k, label in enumerate(LABELS)]  # unlabeled samples take no part
    rows = np.flatnonzero([label is not None for label in part])
    expected = MostAssociated(4).fit(A[rows], LABELS[rows]).support_
    np.testing.assert_array_equal(PerView("top_k:4").fit(Views(a=A), part).transformers_["a"].support_, expected)
    blank = [label if k % 3 else np.nan for k, label in enumerate(LABELS)]
    np.testing.assert_array_equal(PerView("top_k:4").fit(Views(a=A), blank).transformers_["a"].support_, expected)


def test_missing_views_stay_missing_under_recipes():
    mask = {"a": np.arange(N) > 9}
    X = Views(a=A, b=COUNTS, mask=mask)
    Z = PerView(["top_k:3", "standardize"]).fit_transform(X, LABELS)
    assert np.array_equal(Z.mask, X.mask)
    kept = SelectKBest(f_classif, k=3).fit(A[10:], LABELS[10:]).get_support()
    np.testing.assert_allclose(Z["a"][10:], StandardScaler().fit_transform(A[10:, kept]))


# -- the effects of batches
def naive_residuals(values, D):
    """Residuals of least squares with intercept by NumPy, plus the mean, over the cells that are there."""
    out = values.copy()
    for j, column in enumerate(values.T):
        there = ~np.isnan(column)
        design = np.column_stack([np.ones(there.sum()), D[there]])
        fitted = design @ np.linalg.lstsq(design, column[there], rcond=None)[0]
        out[there, j] = column[there] - fitted + column[there].mean()
    return out


@pytest.mark.parametrize("values", [A, HOLED], ids=["whole", "holes"])
def test_effects_are_those_of_least_squares(values):
    one = pd.get_dummies(BATCH).to_numpy(dtype=float)
    X = Views(a=values, batch=BATCH.tolist())
    np.testing.assert_allclose(RemoveBatch().fit_transform(X)["a"], naive_residuals(values, one))
    site = rng.permutation(["m", "n"] * (N // 2))
    two = pd.DataFrame({"plate": BATCH, "site": site})
    both = RemoveBatch().fit_transform(Views(a=values, batch=two))["a"]
    np.testing.assert_allclose(both, naive_residuals(values, pd.get_dummies(two).to_numpy(dtype=float)))
    numbers = np.unique(BATCH, return_inverse=True)[1]
    assert RemoveBatch().fit_transform(Views(a=values, batch=numbers)) == RemoveBatch().fit_transform(X)
    assert RemoveBatch("plate").fit_transform(Views(a=values, plate=one)) == RemoveBatch().fit_transform(X)


def test_one_batch_changes_nothing_and_names_stay():
    X = Views(a=FRAME, t=TEXT, batch=["p"] * N)
    Z = RemoveBatch().fit_transform(X)
    assert X[["a", "t"]] == Z
    assert Z.feature_names == {"a": tuple(FRAME.columns)}
    assert Z.sample_names.tolist() == list(FRAME.index)
    single = RemoveBatch().fit_transform(Views(a=A.astype(np.float32), batch=BATCH.tolist()))
    assert single["a"].dtype == np.float32


def test_batch_means_become_equal_and_new_samples_get_the_training_effects():
    shifted = A + 10 * (BATCH == "q")[:, None]
    train, test = np.arange(40), np.arange(40, N)
    X = Views(a=shifted, batch=BATCH.tolist())
    model = RemoveBatch().fit(X[train])
    Z = model.transform(X[train])["a"]
    for name in "pqrs":
        np.testing.assert_allclose(Z[BATCH[train] == name].mean(axis=0), shifted[train].mean(axis=0))
    effects = {name: shifted[train][BATCH[train] == name].mean(axis=0) - shifted[train].mean(axis=0) for name in "pqrs"}
    expected = shifted[test] - np.array([effects[name] for name in BATCH[test]])
    np.testing.assert_allclose(model.transform(X[test])["a"], expected)
    np.testing.assert_allclose(model.transform({"a": sp.csr_array(shifted[test]), "batch": BATCH[test]})["a"], expected)


def test_logarithms_are_taken_of_tables_with_the_columns_of_the_fit():
    log = PerView("log").fit(Views(c=COUNTS)).transformers_["c"]
    for wide in (COUNTS[:, :4], sp.csr_array(COUNTS[:, :4])):
        with pytest.raises(ValueError, match="X has 4 features, but LogColumns is expecting 5 features"):
            log.transform(wide)
    np.testing.assert_allclose(log.transform(COUNTS), np.log(1 + COUNTS))


def test_effects_that_are_not_estimated_yet_cannot_be_removed():
    with pytest.raises(NotFittedError, match="This RemoveBatch instance is not fitted yet"):
        RemoveBatch().transform(Views(a=A, batch=BATCH.tolist()))


def test_unknown_and_missing_batches_are_left_as_they_are_and_counted():
    model = RemoveBatch().fit(Views(a=A, batch=BATCH.tolist()))
    with pytest.warns(UserWarning, match=r"stay in 3 of 4 samples: 1 without a batch and 2 with .* had \(new, old\)"):
        Z = model.transform({"a": A[:4], "batch": ["new", None, "old", BATCH[3]]})
    np.testing.assert_array_equal(Z["a"][:3], A[:3])
    assert not np.array_equal(Z["a"][3], A[3])
    with pytest.warns(UserWarning, match=r"\(view 'batch'\) stay in 4 of 4 samples: 4 without a batch"):
        np.testing.assert_array_equal(model.transform({"a": A[:4]})["a"], A[:4])
    some = [None if k < 5 else name for k, name in enumerate(BATCH)]
    with pytest.warns(UserWarning, match="stay in 5 of 60 samples: 5 without a batch"):
        Z = RemoveBatch().fit_transform(Views(a=A, batch=some))["a"]
    np.testing.assert_array_equal(Z[:5], A[:5])
    np.testing.assert_allclose(Z[5:], RemoveBatch().fit_transform(Views(a=A[5:], batch=some[5:]))["a"])


def test_a_batch_without_a_view_or_a_value_keeps_its_values():
    mask = {"a": BATCH != "q"}
    X = Views(a=A, b=COUNTS, batch=BATCH.tolist(), mask=mask)
    model = RemoveBatch().fit(X)
    Z = model.transform(X)
    assert np.array_equal(Z.present("a"), X.present("a"))
    rows = BATCH == "q"
    with pytest.warns(UserWarning, match=rf"View 'a': {12 * rows.sum()} values in {rows.sum()} of 60 samples keep the"):
        Z = model.transform({"a": A, "b": COUNTS, "batch": BATCH.tolist()})
    np.testing.assert_array_equal(Z["a"][rows], A[rows])
    for name in "prs":
        np.testing.assert_allclose(Z["a"][name == BATCH].mean(axis=0), A[~rows].mean(axis=0))
    lost = A.copy()
    lost[rows, 2] = np.nan
    column = RemoveBatch().fit(Views(a=lost, batch=BATCH.tolist())).effects_["a"][:, 2]
    assert np.isnan(column).tolist() == [False, True, False, False]


# -- no leakage
def test_selection_inside_the_folds_scores_chance_and_outside_does_not():
    wide = np.random.default_rng(1).normal(size=(80, 3000))
    y = np.arange(80) % 2
    X = Views(a=wide)
    model = make_pipeline(PerView("top_k:20"), LateFusion(LogisticRegression()))
    inside = cross_val_score(model, X, y, cv=5).mean()
    outside = cross_val_score(model[-1], PerView("top_k:20").fit_transform(X, y), y, cv=5).mean()
    assert abs(inside - 0.5) < 0.17  # three standard deviations of a coin
    assert outside > 0.85
    board = cs.compare(X, y, prepare="top_k:20", estimators=["LateFusion", "CoRegularizedRidgeClassifierCV"], cv=5)
    assert all(abs(row.score - 0.5) < 0.17 for row in board)


def test_a_preparation_sees_the_training_part_only():
    seen = []

    class Spy(PerView):
        def fit_transform(self, X, y=None):
            seen.append(len(X))
            return super().fit_transform(X, y)

    X = Views(a=A, b=COUNTS)
    cs.compare(X, CODES, prepare=Spy("standardize"), estimators=["PassiveAggressive"], cv=3, baselines=False)
    assert seen.count(40) == 3
    assert set(seen) == {40, 60}  # on all samples only to see which views it makes


# -- models with these steps
def test_models_are_saved_and_loaded(tmp_path):
    recipes = {"a": ["impute", "quantile", "top_k:5"], "c": ["log", "variance:3", "standardize"]}
    X = Views(a=HOLED, c=COUNTS, batch=BATCH.tolist(), t=TEXT)
    steps = PerView(recipes), RemoveBatch(), PerView({"t": [TfidfVectorizer(), MostAssociated(2)]})
    model = make_pipeline(*steps, LateFusion(LogisticRegression())).fit(X, LABELS)
    cs.save(model, tmp_path / "model.cons")
    again = cs.load(tmp_path / "model.cons")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert isinstance(again[0].transformers_["c"][0], LogColumns)
    with pytest.warns(UserWarning, match="4 without a batch"):
        again.predict(X[["a", "c"]][:4])


NAMED = Views(c=pd.DataFrame(COUNTS - 1, columns=list("abcde"), index=FRAME.index))
BAD = COUNTS.copy()
BAD[4, 2] = -2.5
ERRORS = [
    (lambda: PerView("log").fit(NAMED), "has -1 in sample 's"),
    (lambda: PerView("log").fit(Views(c=BAD)), "View 'c' has -2.5 in row 4, column 2, but the recipe 'log'"),
    (lambda: PerView("log").fit(Views(c=sp.csr_array(BAD))), "View 'c' has -2.5 in row 4, column 2, but"),
    (
        lambda: PerView(["variance:3", "log"]).fit(Views(c=pd.DataFrame(BAD, columns=list("abcde")))),
        "View 'c' has -2.5 in row 4, column 'c', but the recipe 'log' takes no negative values.",
    ),
    (lambda: PerView("log").fit(Views(c=COUNTS)).transform(Views(c=BAD[2:])), "View 'c' has -2.5 in row 2, column 2"),
    (
        lambda: (
            PerView(["variance:5", "log"])
            .fit(Views(c=COUNTS, d=COUNTS))
            .transform(Views(c=BAD, d=COUNTS, mask={"c": np.arange(N) > 2}, sample_names=list(FRAME.index)))
        ),
        "View 'c' has -2.5 in sample 's4', column 2",
    ),
    (lambda: PerView({"t": "log"}).fit(Views(t=TEXT, a=A)), "View 't' is text or other objects, but the recipe 'log'"),
    (
        lambda: PerView({"t": ["top_k:2"]}).fit(Views(t=TEXT, a=A), LABELS),
        "put a transformer such as TfidfVectorizer()",
    ),
    (
        lambda: PerView({"g": "standardize"}).fit(Views(g=np.eye(3), precomputed=True)),
        "View 'g' is a Gram matrix, but the recipe 'standardize' needs columns of numbers. Use 'passthrough'",
    ),
    (lambda: PerView(["log", PCA()]).fit(Views(t=TEXT, c=COUNTS)), "View 't' is text or other objects, but"),
    (lambda: PerView("quantile").fit(Views(s=sp.csr_array(A))), "View 's': The recipe 'quantile' would have to move"),
    (lambda: PerView("logs").fit(Views(a=A)), "There is no recipe 'logs'. The recipes are standardize, impute, log,"),
    (lambda: PerView("top_k").fit(Views(a=A)), "The recipe 'top_k' must have a number of columns, at least 1, such as"),
    (lambda: PerView("variance:0").fit(Views(a=A)), "The recipe 'variance:0' must have a number of columns"),
    (lambda: PerView("log:2").fit(Views(a=A)), "The recipe 'log' takes no number; got 'log:2'."),
    (lambda: PerView({"a": ["log", "drop"]}).fit(Views(a=A)), "View 'a' has 'drop' among other steps."),
    (
        lambda: PerView({"a": [3]}).fit(Views(a=A)),
        "The transformer of view 'a' must be a recipe, have fit and transform,",
    ),
    (
        lambda: PerView("top_k:2").fit(Views(a=A)),
        "View 'a': The recipe 'top_k' ranks columns by their association with",
    ),
    (lambda: PerView("top_k:2").fit(Views(a=A), np.zeros(N)), "compares classes, but y has only the class"),
    (lambda: PerView("top_k:2").fit(Views(a=A), np.full(N, 0.5)), "association with y, but y is constant."),
    (lambda: MostAssociated(2, "regression").fit(A, LABELS), "for regression needs numbers as targets; y has "),
    (
        lambda: RemoveBatch().fit(Views(a=A)),
        "RemoveBatch needs the view 'batch' of the batches, but the views are 'a'.",
    ),
    (lambda: RemoveBatch("a").fit(Views(a=A, b=A)), "has several columns, but not only 0 and 1: "),
    (
        lambda: RemoveBatch().fit(Views(a=sp.csr_array(A), batch=BATCH)),
        "View 'a' is sparse, and RemoveBatch would make",
    ),
    (lambda: RemoveBatch().fit(Views(a=A, batch=None)), "No training sample has the view 'batch' of the batches."),
    (
        lambda: RemoveBatch("g").fit(Views(g=np.eye(N), a=A, precomputed="g")),
        "View 'g' of the batches is a Gram matrix.",
    ),
    (lambda: RemoveBatch().fit(Views(a=A, batch=np.zeros((N, 2)))), "View 'batch' of the batches has only zeros."),
    (lambda: RemoveBatch().fit(Views(a=A * np.inf, batch=BATCH)), "View 'a' contains infinity."),
    (
        lambda: RemoveBatch().fit_transform(Views(a=A, batch=BATCH, mask={"a": np.arange(N) > 0})),
        "Sample 0 has none of the views 'a', only 'batch', which RemoveBatch drops.",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_preparations_get_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


def test_statistics_of_columns_do_not_depend_on_the_slices(monkeypatch):
    from consilience.views import recipes

    wide = HOLED[:3].T[:2]  # two rows, three columns
    wide = np.hstack([wide] * 4)
    expected = np.nanvar(wide, axis=0)
    for cells in (1, 4, 9, 10**6):
        monkeypatch.setattr(recipes, "_CELLS", cells)
        assert np.array_equal(recipes._variances(wide), expected, equal_nan=True)
        assert sum(part.stop - part.start >= 1 for part in recipes._slices(wide)) == len(recipes._slices(wide))
    assert recipes._slices(np.zeros((0, 3)))


def test_constant_outputs_do_not_count_in_the_choice_of_columns():
    from consilience.views.recipes import _regression_tests

    y = TARGET[:, None]
    np.testing.assert_allclose(_regression_tests(A, np.hstack([y, np.full_like(y, 3)])), _regression_tests(A, y))


def test_names_of_batches_are_written_without_a_point_where_they_are_whole():
    from consilience.views.batch_effects import category_names

    given = [2.0, 2.5, "x", 3, np.nan, np.inf, None]
    assert category_names(np.array(given, dtype=object)).tolist() == ["2", "2.5", "x", "3", None, "inf", None]


def test_tests_of_columns_do_not_depend_on_units():
    from consilience.views.recipes import _class_tests, _regression_tests, _weights

    for test, weights in ((_regression_tests, _weights(TARGET, None)), (_class_tests, _weights(LABELS, None))):
        expected = test(A, weights)
        np.testing.assert_allclose(test(A * 1e-4, weights), expected)
        np.testing.assert_allclose(test(sp.csr_array(A), weights), expected)
    np.testing.assert_allclose(
        _regression_tests(A, _weights(TARGET * 1e-4, None)), _regression_tests(A, _weights(TARGET, None))
    )


def test_targets_of_several_columns_are_numbers_whatever_the_task():
    from consilience.views.recipes import _weights

    Y = np.column_stack([CODES, CODES[::-1]])
    for task in (None, "regression", "classification"):
        assert np.array_equal(_weights(Y, task), Y - Y.mean(axis=0))
    assert _weights(CODES, None).shape == (N, 3)
    assert _weights(CODES, "regression").shape == (N, 1)
    assert _weights(CODES + 0.5, None).shape == (N, 1)
    for task in ("regression", None):
        with pytest.raises(ValueError, match="The recipe 'top_k' for regression needs numbers as targets; y has 'x'"):
            _weights(np.column_stack([LABELS, LABELS]), task)
    with pytest.raises(ValueError, match=r"but y has only the class 'x'\. Give two\.$"):
        _weights(np.array(["x", "x"]), None)
