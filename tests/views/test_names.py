"""Samples and columns are matched by name: the right number or a sentence, never a wrong number."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
import strategies
from consilience import PerView, RowBlocks, Views, as_views

N = 30
RNG = np.random.default_rng(0)
IDS = [f"p{k}" for k in range(N)]
A = pd.DataFrame(RNG.normal(size=(N, 4)), index=IDS, columns=list("uvwx"))
B = pd.DataFrame(RNG.normal(size=(N, 3)), index=IDS, columns=list("uyz"))  # u is a column of both views
CLINICAL = pd.DataFrame(
    {
        "age": RNG.normal(size=N),
        "sex": RNG.permutation(["F", "M"] * (N // 2)),
        "stage": pd.Categorical(RNG.permutation(["I", "II", "III"] * (N // 3))),
    },
    index=IDS,
)
LABELS = pd.Series(np.where(A["u"] + B["y"] > 0, "yes", "no"), index=IDS)
TARGET = A["v"] + B["z"]
MIXED = np.random.default_rng(1).permutation(N)

ESTIMATORS = {
    "ridge": cs.CoRegularizedRidgeClassifier(),
    "metric": cs.ViewMetricRidgeClassifier(),
    "margin": cs.MaxMarginClassifier(),
    "early": cs.EarlyFusion(cs.CoRegularizedRidgeClassifier()),
    "late": cs.LateFusion(cs.CoRegularizedRidgeClassifier()),
    "pipeline": make_pipeline(PerView(StandardScaler()), cs.CoRegularizedRidgeClassifier()),
    "landmarks": make_pipeline(cs.Nystroem(n_components=5, random_state=0), cs.CoRegularizedRidgeClassifier("linear")),
    "perceptron": cs.OnlinePerceptron(random_state=0),
}
BATCH = {name: model for name, model in ESTIMATORS.items() if name not in ("perceptron", "early", "late")}


# -- samples
def test_frames_are_aligned_by_their_index():
    X = Views(a=A, b=B.iloc[MIXED])
    np.testing.assert_array_equal(X["b"], B)
    assert X.sample_names.tolist() == IDS
    series = Views(a=A, age=CLINICAL["age"].iloc[MIXED])
    np.testing.assert_array_equal(series["age"][:, 0], CLINICAL["age"])
    numbered = A.reset_index(drop=True)
    np.testing.assert_array_equal(Views(a=numbered, b=numbered.iloc[MIXED])["b"], numbered)
    assert Views(a=numbered, b=numbered).sample_names is None
    twice = A.set_axis(["p"] * N)
    assert Views(a=twice, b=twice).sample_names.tolist() == ["p"] * N


def test_dates_are_names():
    days = A.set_index(pd.date_range("2020-01-01", periods=N))
    X = Views(a=days, b=days.iloc[MIXED])
    assert X.sample_names[1] == pd.Timestamp("2020-01-02")
    np.testing.assert_array_equal(X["a"], X["b"])


def test_an_index_of_several_levels_names_samples_by_tuples():
    levels = A.set_index(pd.MultiIndex.from_product([["x", "y"], range(N // 2)]))
    X = Views(a=levels, b=levels.iloc[MIXED])
    assert X.sample_names[1] == ("x", 1)
    np.testing.assert_array_equal(X["a"], X["b"])
    own = levels.index.tolist()
    assert Views(a=levels[:20], b=levels[10:], join="outer").sample_names.tolist() == own
    assert Views(a=levels[:20], b=levels[10:], join="inner").sample_names.tolist() == own[10:20]


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (
            {"a": A, "b": B[:-2]},
            "View 'b' and view 'a' have different samples: 2 only in view 'a' ('p28', 'p29'). Use join='outer'",
        ),
        ({"a": A, "b": B.reset_index(drop=True)}, "View 'b' has no sample names (its index is 0, 1,"),
        ({"a": A, "b": B.iloc[MIXED], "c": np.ones((N, 1))}, "View 'c' has no sample names, while other views have"),
        ({"a": A.set_axis(["p"] * N), "b": B}, "View 'a' has the sample 'p' more than once"),
        ({"a": A.set_axis(range(1, N + 1)), "b": B.set_axis([str(k) for k in range(1, N + 1)])}, "others text"),
    ],
)
def test_samples_that_cannot_be_matched_get_a_sentence(views, message):
    with pytest.raises(ValueError) as error:
        Views(views)
    assert message in str(error.value)


def test_join_keeps_the_samples_of_all_views_or_all_samples():
    inner = Views(a=A, b=B[5:].iloc[::-1], join="inner")
    assert inner.sample_names.tolist() == IDS[5:]
    outer = Views(a=A[:20], b=B[10:], join="outer")
    assert outer.sample_names.tolist() == IDS
    assert outer.present("a").sum() == outer.present("b").sum() == 20
    np.testing.assert_array_equal(outer["b"][10:], B[10:])
    with pytest.raises(ValueError, match="`join` is 'inner', 'outer' or None; got 'left'"):
        Views(a=A, join="left")
    with pytest.raises(ValueError, match="No sample is in all views"):
        Views(a=A[:10], b=B[10:], join="inner")
    with pytest.raises(ValueError, match="`mask` needs views with their samples in one order"):
        Views(a=A, b=B.iloc[MIXED], mask={"a": np.ones(N, dtype=bool)})


def test_a_column_of_frames_names_the_samples():
    left, right = pl.DataFrame(A.assign(who=IDS)), pl.DataFrame(B.assign(who=IDS).iloc[MIXED])
    X = Views(a=left, b=right, sample_names="who")
    assert X.feature_names == {"a": tuple("uvwx"), "b": tuple("uyz")}
    np.testing.assert_array_equal(X["b"], B)
    wide = pl.DataFrame(pd.concat([A.add_prefix("a__"), B.add_prefix("b__")], axis=1).assign(who=IDS))
    assert as_views(wide, "prefix", sample_names="who").sample_names.tolist() == IDS
    with pytest.raises(ValueError, match="View 'b' has no column 'who' with the names of its samples"):
        Views(a=left, b=right.drop("who"), sample_names="who")
    with pytest.raises(ValueError, match="View 'a' has no sample name in row 1 of column 'who'"):
        Views(a=left.with_columns(who=pl.Series(["p", None, *IDS[2:]])), sample_names="who")
    named = Views(a=A.to_numpy(), b=B.iloc[MIXED], sample_names=IDS)
    np.testing.assert_array_equal(named["b"], B)
    with pytest.raises(ValueError, match="`sample_names` has 2 names for 30 samples"):
        Views(a=A.to_numpy(), sample_names=["p", "q"])


def test_names_travel_with_the_samples():
    X = Views(a=A, b=B)
    names = np.array(IDS)
    parts = {
        "rows": (X[[3, 1]], names[[3, 1]]),
        "slice": (X[4:6], names[4:6]),
        "mask": (X[names < "p2"], names[names < "p2"]),
        "one": (X[7], names[[7]]),
        "views": (X[["b"]], names),
        "renamed": (X.renamed({"a": "c"}), names),
        "combined": (X | Views(c=A[::-1]), names),
        "stacked": (Views.concat([X[:3], X[5:]]), np.delete(names, [3, 4])),
        "scaled": (PerView(StandardScaler()).fit_transform(X), names),
        "features": (cs.Nystroem(n_components=3, random_state=0).fit_transform(X), names),
        "split": (train_test_split(X, random_state=0)[0], train_test_split(names, random_state=0)[0]),
    }
    for part, expected in parts.values():
        assert part.sample_names.tolist() == expected.tolist()
    np.testing.assert_array_equal(parts["combined"][0]["c"], A)
    assert Views.concat([X, Views(a=A.to_numpy())]).sample_names is None
    with pytest.raises(ValueError, match="has other samples than the left side"):
        X | Views(c=A.rename(index={"p0": "q0"}))


def test_a_model_keeps_no_names_of_samples():
    for model in ESTIMATORS.values():
        fitted = clone(model).fit(Views(a=A, b=B), LABELS)
        kept = getattr(fitted, "X_fit_", None)
        assert kept is None or kept.sample_names is None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_targets_weights_and_scores_are_aligned(name):
    X, model = Views(a=A, b=B), ESTIMATORS[name]
    fitted, mixed = (clone(model).fit(X, y) for y in (LABELS.to_numpy(), LABELS.iloc[MIXED]))
    assert (fitted.predict(X) == mixed.predict(X)).all()
    assert fitted.score(X, LABELS.iloc[MIXED]) == fitted.score(X, LABELS)
    assert fitted.score({"a": A.iloc[MIXED], "b": B}, LABELS) == fitted.score(X, LABELS)
    for y in (LABELS.rename({"p0": "q0"}), LABELS.reset_index(drop=True)):
        with pytest.raises(ValueError, match=r"The index of y \(.*\) is not that of the samples \('p0'"):
            clone(model).fit(X, y)
    with pytest.raises(ValueError, match="The index of y"):
        fitted.score(X, LABELS.rename({"p0": "q0"}))


def test_weights_and_groups_are_aligned():
    X, weights = Views(a=A, b=B), pd.Series(RNG.uniform(0.1, 1, N), index=IDS)
    for model in (cs.CoRegularizedRidge(), cs.MaxMarginRegressor(), cs.LateFusion(cs.CoRegularizedRidge())):
        one, other = (clone(model).fit(X, TARGET, w) for w in (weights.to_numpy(), weights.iloc[MIXED]))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
    groups = pd.Series(np.arange(N) // 3, index=IDS)
    boards = [
        cs.compare(X, y, groups=g, estimators=["a alone"], cv=3)
        for y, g in ((LABELS, groups), (LABELS.iloc[MIXED], groups.iloc[MIXED]))
    ]
    assert boards[0][0].scores == boards[1][0].scores
    assert boards[0].predictions_to_frame().index.tolist() == IDS


def test_cross_validation_of_other_orders_is_refused():
    with pytest.raises(ValueError, match="The index of y"):
        cross_val_score(cs.CoRegularizedRidgeClassifier(), Views(a=A), LABELS.iloc[MIXED], error_score="raise")


def test_errors_name_samples_and_columns():
    hole = A.copy()
    hole.loc["p3", "w"] = np.nan
    with pytest.raises(ValueError, match="View 'a' contains NaN in sample 'p3', column 'w'"):
        cs.CoRegularizedRidge().fit(Views(a=hole), TARGET)
    hole.loc["p3"] = np.nan
    with pytest.raises(ValueError, match="Sample 'p3' has no view at all"):
        Views(a=hole)


# -- columns
@pytest.mark.parametrize("name", ESTIMATORS)
def test_columns_are_found_in_any_order(name):
    X = Views(a=A, b=B)
    model = clone(ESTIMATORS[name]).fit(X, LABELS)
    expected = model.predict(X)
    turned = {"b": B[list("zyu")], "a": A[list("xwvu")]}
    assert (model.predict(turned) == expected).all()
    wide = pd.concat([A.add_prefix("a__"), B.add_prefix("b__")], axis=1).assign(other="text")
    assert (model.predict(wide[wide.columns[::-1]]) == expected).all()
    with pytest.warns(UserWarning, match=r"View 'a' has 2 columns that the estimator was not fitted on \(q, r\)"):
        assert (model.predict({"a": A.assign(q=1.0, r=2.0), "b": B}) == expected).all()


@pytest.mark.parametrize("name", BATCH)
def test_columns_that_are_missing_are_refused_or_filled(name):
    X = Views(a=A, b=B)
    model = clone(BATCH[name]).fit(X, LABELS)
    lacking = {"a": A.drop(columns=["v", "x"]), "b": B}
    with pytest.raises(ValueError, match=r"View 'a' has no column 'v', 'x', which .* \(2 of 4 columns are missing\)"):
        model.predict(lacking)
    first = model.steps[0][1] if hasattr(model, "steps") else model
    first.set_params(missing_columns="fill")
    filled = A.assign(v=A["v"].mean(), x=A["x"].mean())
    with pytest.warns(UserWarning, match=r"View 'a' lacks 2 of 4 columns \(v, x\); they are filled with the means"):
        found = model.predict(lacking)
    assert (found == model.predict(Views(a=filled, b=B))).all()


def test_a_plain_frame_is_divided_by_the_names_of_the_fit():
    a, b = A.add_prefix("expr_"), B.add_prefix("meth_")
    model = cs.CoRegularizedRidgeClassifier().fit(Views(a=a, b=b), LABELS)
    wide = pd.concat([b, CLINICAL, a], axis=1)
    assert (model.predict(wide) == model.predict(Views(a=a, b=b))).all()
    assert (model.predict(pl.DataFrame(wide)) == model.predict(wide)).all()
    assert (model.predict(a) == model.predict(Views(a=a))).all()  # the other view is missing
    with pytest.raises(ValueError, match="View 'a' has no column 'expr_u'"):
        model.predict(wide.drop(columns="expr_u"))
    with pytest.raises(ValueError, match=r"the data frame has none of them, only age, sex, stage"):
        model.predict(CLINICAL)
    half = cs.CoRegularizedRidgeClassifier().fit(Views(a=a, b=B.to_numpy()), LABELS)  # the columns of b have no names
    assert (half.predict(wide) == half.predict(Views(a=a))).all()
    shared = cs.CoRegularizedRidgeClassifier().fit(Views(a=A, b=B), LABELS)
    with pytest.raises(ValueError, match="Column 'u' may be of the views 'a', 'b'"):
        shared.predict(A)


def test_columns_are_filled_with_the_means_of_the_blocks_that_have_their_view():
    sex = CLINICAL[["sex"]]  # one column of text, which has a name and no mean
    X = Views(a=A, sex=sex, mask={"a": np.arange(N) >= 12})  # no sample of the first blocks has the view 'a'
    prepare = PerView("passthrough", missing_columns="fill").fit(RowBlocks.of(X, size=6))
    with pytest.warns(UserWarning, match=r"View 'a' lacks 1 of 4 columns \(v\); they are filled with the means"):
        found = prepare.transform(Views(a=A.drop(columns="v"), sex=sex))
    np.testing.assert_allclose(found["a"], A.assign(v=A["v"].iloc[12:].mean()))


def test_sparse_views_have_named_columns():
    anndata = pytest.importorskip("anndata")
    import scipy.sparse as sp

    data = anndata.AnnData(
        sp.random(N, 6, 0.5, format="csr", random_state=0), pd.DataFrame(index=IDS), pd.DataFrame(index=list("abcdef"))
    )
    model = cs.CoRegularizedRidgeClassifier("linear", missing_columns="fill").fit(data, LABELS)
    expected = model.decision_function(data)
    np.testing.assert_allclose(model.decision_function(data[:, list("fbdaec")]), expected)
    with pytest.warns(UserWarning, match="View 'X' lacks 1 of 6 columns"):
        found = model.decision_function(data[:, list("fbdae")])
    dense = np.asarray(data.X.todense())
    dense[:, 2] = dense[:, 2].mean()
    np.testing.assert_allclose(found, model.decision_function(Views(X=dense)))


# -- columns that are not numbers
def test_strings_and_categories_become_columns_of_their_view():
    X = Views(clinical=CLINICAL, a=A)
    assert X.feature_names["clinical"] == ("age", "sex=F", "sex=M", "stage=I", "stage=II", "stage=III")
    np.testing.assert_array_equal(X["clinical"][:, 1], CLINICAL["sex"] == "F")
    assert Views(stage=CLINICAL[["stage"]])["stage"].shape == (N, 3)
    assert Views(sex=CLINICAL[["sex"]]).kind("sex") == "objects"  # one column of strings is text
    gaps = CLINICAL.astype({"sex": object})
    gaps.loc["p0", "sex"] = None
    assert np.isnan(Views(clinical=gaps)["clinical"][0, 1:3]).all()
    nothing = CLINICAL.assign(empty=pd.Series([None] * N, index=IDS, dtype=object))
    assert np.isnan(Views(clinical=nothing)["clinical"][:, -1]).all()


def test_categories_of_new_samples_are_those_of_the_fit():
    X = Views(clinical=CLINICAL, a=A)
    model = cs.CoRegularizedRidgeClassifier().fit(X, LABELS)
    women = CLINICAL["sex"] == "F"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a category that no new sample has is no news
        part = model.decision_function({"clinical": CLINICAL[women], "a": A[women]})
        whole = model.decision_function(pd.concat([A, CLINICAL], axis=1))
    np.testing.assert_allclose(part, model.decision_function(X)[women])
    np.testing.assert_allclose(whole, model.decision_function(X))
    with pytest.warns(UserWarning, match="15 samples have the category 'sex=D', which no training sample had"):
        model.predict({"clinical": CLINICAL.replace("F", "D"), "a": A})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1.5"] * 26 + ["n.d."] * 4, "column 'q' has numbers, and 4 cells that cannot be read as numbers: 'n.d.'"),
        ([1.0] * 29 + ["?"], "column 'q' has numbers, and 1 cell that cannot be read as numbers: '?'"),
        (pd.Timestamp("2020-01-01"), "column 'q' has dates or times. Make numbers of them"),
        ([f"note {k}" for k in range(N)], "column 'q' has 30 different strings in 30 samples"),
        ([[1, 2]] * N, "column 'q' holds list values"),
    ],
)
def test_columns_that_are_neither_numbers_nor_categories_get_a_sentence(values, message):
    with pytest.raises(ValueError) as error:
        Views(clinical=CLINICAL.assign(q=values))
    assert f"View 'clinical': {message}" in str(error.value)


# -- conversion
def test_views_as_one_frame_and_back():
    X = Views(a=A, b=B[:20], join="outer")
    frame = X.to_frame()
    assert frame.index.tolist() == IDS
    back = as_views(frame, "prefix")
    assert back.feature_names["b"] == ("b__u", "b__y", "b__z")
    np.testing.assert_array_equal(back["b"], X["b"])
    text = Views(t=["x", None], a=np.ones((2, 1))).to_frame()
    assert text["t__0"].tolist() == ["x", None]
    with pytest.raises(TypeError, match="View 'g' is a Gram matrix"):
        Views(g=np.eye(3), precomputed=True).to_frame()


def test_annotated_matrices_are_views():
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    X = Views(a=A[:20], b=B[10:], join="outer")
    data = X.to_mudata()
    back = as_views(data)
    assert set(back.sample_names) == set(IDS)
    order = [back.sample_names.tolist().index(name) for name in IDS]
    assert back[order] == X
    assert back.feature_names == X.feature_names
    one = anndata.AnnData(A.to_numpy(), pd.DataFrame(index=IDS), pd.DataFrame(index=list("uvwx")))
    one.layers["log"] = np.log1p(np.abs(A.to_numpy()))
    one.obsm["X_pca"] = A.to_numpy()[:, :2]
    assert as_views(one).names == ("X",)
    assert as_views(one).sample_names.tolist() == IDS
    chosen = as_views(one, {"counts": "layers/log", "pca": "obsm/X_pca"})
    assert chosen.feature_names == {"counts": tuple("uvwx")}
    np.testing.assert_array_equal(chosen["counts"], one.layers["log"])
    paired = Views(a=one[MIXED], b=B)
    np.testing.assert_array_equal(paired["b"], B.iloc[MIXED])
    assert as_views(data, {"rna": "a/X"}).names == ("rna",)
    with pytest.raises(ValueError, match="View 'q' asks for 'layers/raw', which the data do not have; they have 'X', "):
        as_views(one, {"q": "layers/raw"})
    with pytest.raises(ValueError, match="View 'q' asks for 'c/X', but the modalities are 'a', 'b'"):
        as_views(data, {"q": "c/X"})
    one.var_names = ["u", "u", "w", "x"]
    with pytest.raises(ValueError, match="View 'X' has several columns of one name: u"):
        as_views(one)
    assert isinstance(data, mudata.MuData)


def test_names_that_are_given_decide_the_order_of_annotated_samples():
    anndata = pytest.importorskip("anndata")
    one = anndata.AnnData(A.to_numpy(), pd.DataFrame(index=IDS), pd.DataFrame(index=list("uvwx")))
    mixed = as_views(one, sample_names=A.index[MIXED])
    assert mixed.sample_names.tolist() == A.index[MIXED].tolist()
    np.testing.assert_array_equal(mixed["X"], A.iloc[MIXED])


# -- any order
@settings(max_examples=40, deadline=None)
@given(strategies.orders, strategies.flags)
def test_any_order_of_rows_columns_and_views_gives_the_same_predictions(random, wide):
    """Predictions by name do not depend on the order of anything."""

    def mixed(frame, axis):
        names = list(frame.axes[axis])
        random.shuffle(names)
        return frame.reindex(names, axis=axis)

    tables = {"a": A.add_prefix("a_"), "b": B.add_prefix("b_"), "clinical": CLINICAL}
    names = random.sample(list(tables), 3)
    X = {name: mixed(mixed(tables[name], 0), 1) for name in names}
    model = cs.CoRegularizedRidgeClassifier({"a": "linear"}).fit(X, mixed(LABELS, 0))
    expected = cs.CoRegularizedRidgeClassifier({"a": "linear"}).fit(tables, LABELS)
    new = {name: mixed(mixed(tables[name], 0), 1) for name in random.sample(list(tables), 3)}
    order = next(iter(new.values())).index
    found = model.decision_function(mixed(pd.concat(new, axis=1).droplevel(0, axis=1), 1) if wide else new)
    reference = pd.Series(expected.decision_function(tables), index=IDS)
    order = next(iter(new.values())).index if not wide else pd.concat(new, axis=1).index
    np.testing.assert_allclose(found, reference[order], atol=1e-9)


def test_lacking_and_ambiguous_columns_are_named():
    wide = pd.DataFrame(np.eye(8), columns=[f"c{k}" for k in range(8)])
    model = cs.CoRegularizedRidge().fit(Views(a=wide), np.arange(8.0))
    for n, told in (
        (3, "has no column 'c3', 'c4', 'c5', 'c6', 'c7', which the estimator was fitted on (5 of 8 columns are"),
        (2, "has no column 'c2', 'c3', 'c4', 'c5', 'c6' and 1 more, which the estimator was fitted on (6 of 8 columns"),
        (1, "has no column 'c1', 'c2', 'c3', 'c4', 'c5' and 2 more, which the estimator was fitted on (7 of 8 columns"),
    ):
        with pytest.raises(ValueError, match=re.escape(told)):
            model.predict(Views(a=wide.iloc[:, :n]))
    model = cs.CoRegularizedRidge().fit(Views(a=A, b=B), TARGET)
    with pytest.raises(ValueError, match=r"Column 'u' may be of the views 'a', 'b'.* 'a__u' and 'b__u'\.$"):
        model.predict(pd.concat([A, B[["y", "z"]]], axis=1))


def test_columns_without_names_are_taken_by_position_and_this_is_told():
    model = cs.CoRegularizedRidge().fit(Views(a=A, b=B), TARGET)
    with pytest.warns(
        UserWarning, match="View 'a' has no column names, but had some when CoRegularizedRidge was fitted"
    ):
        found = model.predict(Views(a=A.to_numpy(), b=B))
    np.testing.assert_allclose(found, model.predict(Views(a=A, b=B)), rtol=1e-9)  # another order in memory
    with pytest.raises(
        ValueError, match="View 'a' of X has 3 features, but CoRegularizedRidge is expecting 4 features"
    ):
        model.predict(Views(a=A.to_numpy()[:, :3], b=B))


def test_of_many_columns_the_first_five_are_named():
    wide = pd.DataFrame(np.eye(8), columns=[f"c{k}" for k in range(8)])
    more = wide.assign(**{f"d{k}": 1.0 for k in range(6)})
    model = cs.CoRegularizedRidge(missing_columns="fill").fit(Views(a=wide), np.arange(8.0))
    with pytest.warns(UserWarning, match=r"lacks 6 of 8 columns \(c2, c3, c4, c5, c6 and 1 more\); they are filled"):
        model.predict(Views(a=wide[["c0", "c1"]]))
    with pytest.warns(UserWarning, match=r"has 6 columns that .* \(d0, d1, d2, d3, d4 and 1 more\); ignored"):
        model.predict(Views(a=more))


def test_a_permuted_default_index_is_refused():
    default, y = A.reset_index(drop=True), TARGET.reset_index(drop=True)
    other = y.iloc[MIXED]
    message = r"The index of y .* in another order. Give y.sort_index\(\) .* or y.to_numpy\(\) if"
    model = cs.CoRegularizedRidge().fit(default, y)
    for X in (default, {"a": default}, Views(a=default, b=B.to_numpy()), as_views(default, [list("uv"), list("wx")])):
        for call in (clone(model).fit, clone(model).fit(X, y).score):
            with pytest.raises(ValueError, match=message):
                call(X, other)
    with pytest.raises(ValueError, match="The index of sample_weight"):
        clone(model).fit(default, y, sample_weight=pd.Series(np.ones(N)).iloc[MIXED])
    pipeline = make_pipeline(PerView(StandardScaler()), cs.CoRegularizedRidge()).fit(Views(a=default), y)
    for call in (pipeline.score, lambda *given: cs.evaluate_external(pipeline, *given)):
        with pytest.raises(ValueError, match="The index of y"):
            call(Views(a=default), other)
    for X in (default.to_numpy(), Views(a=default)[MIXED]):  # rows without an index are matched by position
        np.testing.assert_array_equal(
            clone(model).fit(X, other).predict(X), clone(model).fit(X, other.to_numpy()).predict(X)
        )


def test_targets_of_more_samples_are_selected_by_name():
    few = Views(a=A, b=B)[:20]
    with pytest.raises(ValueError, match=r"Give y with the same index: y.loc\[X.sample_names\]"):
        cs.CoRegularizedRidge().fit(few, TARGET)
    chosen = cs.CoRegularizedRidge().fit(few, TARGET.loc[few.sample_names])
    np.testing.assert_array_equal(chosen.predict(few), cs.CoRegularizedRidge().fit(few, TARGET[:20]).predict(few))


def test_targets_of_frames_outside_of_the_fit_are_matched_by_name():
    model = cs.CoRegularizedRidge().fit({"a": A, "b": B}, TARGET)
    for X in ({"a": A, "b": B}, Views(a=A, b=B)):
        found = cs.evaluate_external(model, X, TARGET.iloc[MIXED], n_resamples=100)
        assert found.measures["R2"].value == pytest.approx(model.score(X, TARGET))
    one = cs.CoRegularizedRidge().fit(A, TARGET)
    found = cs.evaluate_external(one, A, TARGET.iloc[MIXED], n_resamples=100)
    assert found.measures["R2"].value == pytest.approx(one.score(A, TARGET))


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA])
def test_missing_groups_are_refused_with_their_number(gap):
    groups = [gap] * 12 + [f"g{k % 6}" for k in range(N - 12)]
    X = Views(a=A, b=B)
    calls = [
        lambda g: cs.ConsensusRegressor().fit(X, TARGET, groups=g),
        lambda g: cs.BandedRidgeCV().fit(X, TARGET, groups=g),
        lambda g: cs.compare(X, LABELS, groups=g, estimators=["a alone"], cv=3),
        lambda g: next(cs.LabeledKFold(3).split(X, LABELS, g)),
    ]
    for form in (groups, np.array(groups, dtype=object), pd.Series(groups, index=IDS, dtype=object)):
        for call in calls:
            with pytest.raises(ValueError, match=r"`groups` is missing .* for 12 of 30 samples"):
                call(form)
    with pytest.raises(ValueError, match=r"`groups` is missing .* for 12 of 30 samples"):
        calls[0](np.ma.array(np.arange(N), mask=np.arange(N) < 12))


MASK = np.arange(N) < 10
MASKED = {
    "numbers": (cs.CoRegularizedRidge(), np.ma.array(np.where(MASK, 1e6, TARGET), mask=MASK)),
    "classes": (cs.ConsensusClassifier(), np.ma.array(np.where(MASK, 7, LABELS == "yes"), mask=MASK)),
    "text": (cs.MaxMarginClassifier(), np.ma.array(np.where(MASK, "?", LABELS), mask=MASK)),
    "labels": (
        cs.PassiveAggressive(shuffle=False),
        np.ma.array(np.eye(3, dtype=int)[np.arange(N) % 3], mask=np.repeat(MASK[:, None], 3, axis=1)),
    ),
    "online": (cs.OnlinePerceptron(shuffle=False), np.ma.array(np.where(MASK, 7, LABELS == "yes"), mask=MASK)),
    "outputs": (cs.VectorValuedRegressor(), np.ma.array(np.c_[TARGET, TARGET], mask=np.c_[MASK, ~MASK])),
    "banded": (cs.BandedRidgeCV(random_state=0), np.ma.array(np.where(MASK, 1e6, TARGET), mask=MASK)),
    "fusion": (cs.EarlyFusion(cs.CoRegularizedRidge()), np.ma.array(np.where(MASK, 1e6, TARGET), mask=MASK)),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_targets_are_missing(name):
    (model, y), X = MASKED[name], Views(a=A, b=B)
    gaps = y.astype(object).filled(None) if y.dtype.kind != "f" else y.filled(np.nan)
    gaps = np.where(np.ma.getmaskarray(y), None, gaps)
    masked, missing = clone(model).fit(X, y), clone(model).fit(X, gaps)
    np.testing.assert_array_equal(masked.predict(X), missing.predict(X))
    if name != "outputs":
        assert masked.score(X, y) == masked.score(X, gaps)
    if hasattr(model, "partial_fit"):
        np.testing.assert_array_equal(*(clone(model).partial_fit(X, given).decision_function(X) for given in (y, gaps)))
        one = clone(model).fit(X, y)
        assert one.partial_fit(X[:1], y[:1]).n_samples_seen_ == masked.n_samples_seen_  # unlabeled


def test_masked_weights_are_refused_and_masked_targets_are_counted():
    X, weights = Views(a=A, b=B), np.ma.array(np.ones(N), mask=MASK)
    for model in (cs.CoRegularizedRidge(), cs.ConsensusRegressor(), cs.PassiveAggressiveRegressor()):
        with pytest.raises(ValueError, match="sample_weight must be finite"):
            clone(model).fit(X, TARGET, sample_weight=weights)
    with pytest.raises(ValueError, match="10 samples have no target"):
        cs.compare(X, MASKED["numbers"][1], estimators=["a alone"])
    model = cs.CoRegularizedRidge().fit(X, TARGET)
    assert cs.evaluate_external(model, X, MASKED["numbers"][1], n_resamples=100).n_unlabeled == 10


def test_columns_whose_names_are_the_same_text_are_refused():
    twice = pd.DataFrame({1: [1.0, 2.0], "1": [3.0, 4.0], "a__x": [1.0, 2.0]})
    model = cs.CoRegularizedRidge().fit({"a": twice[["1"]], "b": twice[["a__x"]]}, [0.0, 1.0])
    for read in (lambda: Views(a=twice), lambda: as_views(twice, {"a": ["1"]}), lambda: model.predict(twice)):
        with pytest.raises(ValueError, match=r"names are the same text: 1 and '1'\. Rename one of them"):
            read()
