"""PerView: one transformer per view."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

import consilience as cs
from consilience import PerView, RowBlocks, Views
from consilience.views._block_transforms import survey_views

rng = np.random.default_rng(0)
A = rng.normal(size=(30, 4)) * 3 + 1
TEXT = ["red fish", "blue fish", "red bird"] * 10
y = np.arange(30) % 3
X = Views(a=A, b=A[:, :2] + 5, t=TEXT)


def test_each_view_has_its_own_transformer():
    Z = PerView({"a": StandardScaler(), "t": TfidfVectorizer(), "b": "drop"}).fit_transform(X)
    assert Z.names == ("a", "t")
    np.testing.assert_allclose(Z["a"], StandardScaler().fit_transform(A))
    np.testing.assert_allclose(Z["t"].toarray(), TfidfVectorizer().fit_transform(TEXT).toarray())
    assert Z.feature_names["t"] == ("bird", "blue", "fish", "red")
    # one for all is cloned, and the rest passes
    scaler = StandardScaler()
    prepare = PerView(scaler).fit(X[["a", "b"]])
    assert not hasattr(scaler, "mean_")
    assert prepare.transformers_["a"] is not prepare.transformers_["b"]
    assert PerView({"a": StandardScaler()}).fit_transform(X)["b"] is X["b"]
    assert PerView({"a": StandardScaler()}, remainder="drop").fit_transform(X).names == ("a",)
    assert PerView({"a": PCA(2)}, remainder=TfidfVectorizer()).fit_transform(X[["a", "t"]])["t"].shape == (30, 4)
    assert PerView("passthrough").fit_transform(X) == X


def test_fitted_on_present_rows_and_missing_rows_stay_missing():
    mask = np.ones((30, 3), dtype=bool)
    mask[:10, 0] = mask[5:20, 2] = False
    M = Views(X, mask=mask)
    prepare = PerView({"a": StandardScaler(), "t": TfidfVectorizer()}).fit(M)
    Z = prepare.transform(M)
    assert np.array_equal(Z.mask, mask)
    np.testing.assert_allclose(prepare.transformers_["a"].mean_, A[10:].mean(axis=0))
    np.testing.assert_allclose(Z["a"][10:], StandardScaler().fit_transform(A[10:]))
    assert prepare.transform({"b": A[:, :2]}).present("b").all()
    assert not prepare.transform({"b": A[:, :2]}).present("t").any()


def test_of_any_number_of_blocks_one_row_per_view_is_kept_at_most():
    late = {"a": np.arange(30) >= 20, "b": np.ones(30, dtype=bool)}
    some = survey_views(PerView("passthrough"), RowBlocks.of(Views(a=A, b=A[:, :2], mask=late), size=3))
    assert some.names == ("a", "b")
    assert some.present("a").any()
    assert some.present("b").any()
    assert len(some) <= 2


def test_a_view_missing_at_fit_stays_missing_and_a_bare_table_reaches_one_named_view():
    prepare = PerView(StandardScaler()).fit(Views(a=None, b=A))
    assert not prepare.transform({"a": A, "b": A}).present("a").any()
    assert prepare.fit_transform(Views(a=None, b=A)) == prepare.transform(Views(b=A))
    assert PerView(StandardScaler()).fit(Views(a=A)).transform(A).names == ("a",)


@pytest.mark.filterwarnings("ignore:.*TargetEncoder")
def test_the_transformers_own_fit_transform_is_used():
    """A target encoder crosses folds in fit_transform, so that targets do not leak into its own training rows."""
    category = Views(c=np.arange(30).reshape(-1, 1) % 7)
    target = rng.normal(size=30)
    encoder = TargetEncoder(target_type="continuous", random_state=0)
    ours = PerView(encoder).fit_transform(category, target)["c"]
    np.testing.assert_array_equal(ours, encoder.fit_transform(np.arange(30).reshape(-1, 1) % 7.0, target))
    assert not np.array_equal(ours, PerView(encoder).fit(category, target).transform(category)["c"])


def test_single_missing_values_are_filled_and_targets_reach_the_transformers():
    holed = A.copy()
    holed[0, 1] = np.nan
    holed[1] = np.nan
    Z = PerView({"a": SimpleImputer()}).fit_transform(Views(a=holed, b=A)).check_finite()
    assert Z["a"][0, 1] == pytest.approx(np.delete(A[:, 1], [0, 1]).mean())
    assert not Z.present("a")[1]

    prepare = PerView({"a": SelectKBest(k=1)}, remainder="drop")
    assert prepare.fit_transform(X, y)["a"].shape == (30, 1)
    mask = {"a": np.arange(30) > 4}
    part = prepare.fit(Views(X, mask=mask), y).transformers_["a"]
    np.testing.assert_allclose(part.scores_, SelectKBest(k=1).fit(A[5:], y[5:]).scores_)


def test_pipelines_inside_parameters_and_frames():
    prepare = PerView({"a": make_pipeline(StandardScaler(), PCA(2)), "t": TfidfVectorizer()})
    prepare.set_params(transformers__a__pca__n_components=3)
    assert clone(prepare).fit_transform(X)["a"].shape == (30, 3)
    frame = pd.DataFrame(A, columns=["p__x", "p__y", "q__x", "q__y"])
    Z = PerView(StandardScaler().set_output(transform="pandas"), views="prefix").fit_transform(frame)
    assert Z.names == ("p", "q")
    assert Z.feature_names["p"] == ("p__x", "p__y")
    sparse = PerView(StandardScaler(with_mean=False)).fit_transform(Views(s=sp.csr_array(A)))
    assert sparse.kind("s") == "sparse"


ERRORS = [
    (lambda: PerView({"z": StandardScaler()}).fit(X), "a transformer for the view 'z', but the views are 'a', 'b',"),
    (lambda: PerView({"a": "scale"}).fit(X), "There is no recipe 'scale'. The recipes are standardize, impute, log,"),
    (
        lambda: PerView({"a": 3}).fit(X),
        "must be a recipe, have fit and transform, or be 'passthrough' or 'drop'; got 3.",
    ),
    (lambda: PerView(3).fit(X), "The 'transformers' parameter of PerView must be an instance of"),
    (lambda: PerView({"a": "drop"}, remainder=None).fit(X), "The 'remainder' parameter of PerView must be an object"),
    (lambda: PerView(StandardScaler()).fit(X), "View 't': "),
    (lambda: PerView(StandardScaler()).fit(Views(g=np.eye(3), precomputed=True)), "View 'g' is a Gram matrix, but"),
    (lambda: PerView(PCA()).fit(Views(a=A, b=None)).transform({"b": A[:1]}), "has none of the remaining views 'a'."),
    (lambda: PerView({"a": StandardScaler()}).fit(X, [1, 2, 3]), "X has 30 samples, but y has 3."),
    (lambda: PerView({"a": PCA()}).fit(X).transform({"a": A[:, :2]}), "View 'a' of X has 2 features, but PerView is"),
    (lambda: PerView(StandardScaler()).transform(X), "is not fitted yet"),
    (lambda: PerView({"a": PCA()}).fit(X).transform({"c": A}), "PerView was fitted on the views 'a', 'b', 't'; it"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


def test_tags_tell_that_missing_values_and_sparse_views_are_taken():
    tags = PerView("standardize").__sklearn_tags__().input_tags
    assert tags.sparse
    assert tags.allow_nan


def test_parameters_are_validated_by_every_way_to_fit():
    for method in ("fit", "fit_transform", "partial_fit", "learn_transform"):
        with pytest.raises(ValueError, match="The 'transformers' parameter of PerView must be an instance of"):
            getattr(PerView(3), method)(X)


def test_metadata_routing_brings_weights_to_the_transformers_that_request_them():
    rng = np.random.default_rng(0)
    A, y, weights = rng.normal(size=(60, 3)) * [1, 10, 100], rng.normal(size=60), 10.0 ** rng.uniform(-2, 2, 60)
    X = Views({"a": A, "b": A[:, :2] ** 2}, mask={"b": np.arange(60) % 3 > 0})
    with config_context(enable_metadata_routing=True):
        asks, asks_not = (StandardScaler().set_fit_request(sample_weight=asked) for asked in (True, False))
        ridge = cs.CoRegularizedRidge().set_fit_request(sample_weight=True)
        model = make_pipeline(PerView(asks), ridge).fit(X, y, sample_weight=pd.Series(weights))
        rows = np.flatnonzero(X.present("b"))
        for view, there in (("a", slice(None)), ("b", rows)):
            expected = StandardScaler().fit(X[view][there], sample_weight=weights[there])
            np.testing.assert_allclose(model[0].transformers_[view].mean_, expected.mean_)
        mixed = make_pipeline(PerView({"a": [asks, "top_k:2"], "b": asks_not}), ridge).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(mixed[0].transformers_["b"].mean_, X["b"][rows].mean(axis=0))
        np.testing.assert_allclose(mixed[0].transformers_["a"][0].mean_, np.average(A, axis=0, weights=weights))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(PerView(StandardScaler()), ridge).fit(X, y, sample_weight=weights)
        with pytest.raises(ValueError, match="Leave `y` and metadata out"):
            PerView(asks).fit(RowBlocks.of(X), sample_weight=weights)
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        PerView(asks).fit(X, y, sample_weight=weights)
    plain = make_pipeline(PerView(asks), ridge).fit(X, y)
    np.testing.assert_allclose(plain[0].transformers_["a"].mean_, A.mean(axis=0))


@pytest.mark.parametrize("fusion", [cs.LateFusion, cs.EarlyFusion])
def test_with_metadata_routing_only_estimators_that_request_weights_get_them(fusion):
    rng = np.random.default_rng(0)
    A, weights = rng.normal(size=(60, 3)), 10.0 ** rng.uniform(-2, 2, 60)
    X, y = Views(a=A, b=A[:, :2] ** 2), (A[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = LogisticRegression()
    weighted, plain = fusion(model).fit(X, y, sample_weight=weights), fusion(model).fit(X, y)
    with config_context(enable_metadata_routing=True):
        for asked, expected in ((True, weighted), (False, plain)):
            found = fusion(LogisticRegression().set_fit_request(sample_weight=asked)).fit(X, y, sample_weight=weights)
            np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            fusion(model).fit(X, y, sample_weight=weights)
