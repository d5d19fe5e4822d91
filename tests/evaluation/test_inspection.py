"""What a fitted model tells of its views, alone, in a pipeline and in a search; equal error rates."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import consilience as cs
from consilience import PerView, Views
from consilience.kernels import RBF

N = 90
RNG = np.random.default_rng(0)
IDS = [f"p{k}" for k in range(N)]
LABELS = np.where(RNG.random(N) > 0.5, "yes", "no")
SIGN = np.where(LABELS == "yes", 1.0, -1.0)
FRAMES = {
    "a": pd.DataFrame(SIGN[:, None] * [1.0, 0.5] + RNG.normal(size=(N, 2)), index=IDS, columns=["u", "v"]) * 30,
    "b": pd.DataFrame(SIGN[:, None] * [0.0, 0.7, 0.0] + RNG.normal(size=(N, 3)), index=IDS, columns=["x", "y", "z"]),
    "c": pd.DataFrame(RNG.normal(size=(N, 2)), index=IDS, columns=["s", "t"]),
}
X = Views(FRAMES, mask=np.arange(3 * N).reshape(N, 3) % 7 > 0)
TARGET = 100 + 20 * SIGN + RNG.normal(size=N)
MIXED = np.random.default_rng(1).permutation(N)
TRAIN, TEST = slice(0, 60), slice(60, N)
GRID = {"alpha": [1e-3, 1e-1]}


def ridge():
    return cs.CoRegularizedRidgeClassifier(RBF(0.1))


def scaled(estimator):
    return make_pipeline(PerView(StandardScaler()), estimator)


def in_pipeline(grid):
    return {f"coregularizedridgeclassifier__{name}": values for name, values in grid.items()}


# each contains one ridge classifier; by hand, it is `inside(model)` on `seen(model)`
MODELS = {
    "alone": lambda: ridge(),
    "pipeline": lambda: scaled(ridge()),
    "search": lambda: GridSearchCV(ridge(), GRID, cv=3),
    "search of a pipeline": lambda: GridSearchCV(scaled(ridge()), in_pipeline(GRID), cv=3),
    "random search of a pipeline": lambda: RandomizedSearchCV(
        scaled(ridge()), in_pipeline(GRID), n_iter=1, cv=3, random_state=0
    ),
    "pipeline of a search": lambda: scaled(GridSearchCV(ridge(), GRID, cv=3)),
    "pipeline of a pipeline": lambda: make_pipeline("passthrough", scaled(ridge())),
    "calibrated": lambda: CalibratedClassifierCV(scaled(ridge()), ensemble=False, cv=3),
    "calibrated, frozen": lambda: CalibratedClassifierCV(FrozenEstimator(scaled(ridge()).fit(X[TRAIN], LABELS[TRAIN]))),
    "threshold": lambda: FixedThresholdClassifier(scaled(ridge()), pos_label="yes"),
}


def by_hand(name):
    """Return a fitted model, its ridge classifier, and the test samples as the ridge classifier receives them."""
    model = MODELS[name]().fit(X[TRAIN], LABELS[TRAIN])
    pipeline = {
        "pipeline": lambda: model,
        "search of a pipeline": lambda: model.best_estimator_,
        "random search of a pipeline": lambda: model.best_estimator_,
        "pipeline of a pipeline": lambda: model[-1],
        "calibrated": lambda: model.calibrated_classifiers_[0].estimator,
        "calibrated, frozen": lambda: model.estimator.estimator,
        "threshold": lambda: model.estimator_,
    }.get(name)
    if name == "pipeline of a search":
        return model, model[-1].best_estimator_, model[0].transform(X[TEST])
    if pipeline is None:
        return model, (model if name == "alone" else model.best_estimator_), X[TEST]
    return model, pipeline()[-1], pipeline()[0].transform(X[TEST])


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return by_hand(request.param)


def test_agreement_inside_wrappers_is_that_of_the_final_estimator(fitted):
    model, final, seen = fitted
    found = cs.view_agreement(model, X[TEST])
    outputs = final.view_decision_function(seen)
    votes = np.where(outputs > 0, "yes", "no").astype(object)
    votes[np.isnan(outputs)] = None
    np.testing.assert_array_equal(found.votes, votes)
    pairs = np.stack([outputs[:, v] - outputs[:, w] for v in range(3) for w in range(v)])
    several = (~np.isnan(pairs)).any(axis=0)
    np.testing.assert_allclose(found.spread[several], np.sqrt(np.nanmean(pairs[:, several] ** 2, axis=0)))
    assert np.isnan(found.spread[~several]).all()
    assert found.sample_names.tolist() == IDS[TEST]


def test_importances_are_those_of_the_whole_model_without_a_view(fitted):
    model, final, _ = fitted
    y = pd.Series(LABELS, index=IDS)[TEST]
    found = cs.view_importances(model, X[TEST], y.sample(frac=1, random_state=0))
    assert found.score == model.score(X[TEST], y.to_numpy())
    assert found.weight == dict(zip("abc", final.view_weights_ / final.view_weights_.sum(), strict=True))
    for name in X.names:
        others = [other for other in X.names if other != name]
        rows = np.flatnonzero(X[TEST].present(name) & X[TEST].mask[:, [X.names.index(o) for o in others]].any(axis=1))
        here, of = X[TEST][rows], y.to_numpy()[rows]
        assert found.loss[name] == pytest.approx(model.score(here, of) - model.score(here[others], of))
        assert found.n_samples[name] == len(rows)
    assert any(found.loss.values())


def test_certificates_inside_wrappers(fitted):
    model, final, _ = fitted
    assert cs.certificate(model) == final.certificate()
    with pytest.raises(TypeError, match="The certificate of CoRegularizedRidgeClassifier needs no samples"):
        cs.certificate(model, X, LABELS)


def test_spreads_are_in_the_units_of_the_target():
    model = TransformedTargetRegressor(scaled(cs.CoRegularizedRidge(RBF(0.1))), transformer=StandardScaler())
    model.fit(X[TRAIN], TARGET[TRAIN])
    pipeline = model.regressor_
    inside = cs.view_agreement(pipeline[-1], pipeline[0].transform(X[TEST]))
    found = cs.view_agreement(model, X[TEST])
    np.testing.assert_allclose(found.spread, inside.spread * model.transformer_.scale_[0])
    assert set(found) == {"spread", "sample_names"}
    growing = TransformedTargetRegressor(pipeline, func=np.log, inverse_func=np.exp).fit(X[TRAIN], TARGET[TRAIN])
    outputs = np.exp(growing.regressor_[-1].view_decision_function(growing.regressor_[0].transform(X[TEST])))
    pairs = np.stack([outputs[:, v] - outputs[:, w] for v in range(3) for w in range(v)])
    expected = np.sqrt(np.nanmean(pairs**2, axis=0))
    np.testing.assert_allclose(cs.view_agreement(growing, X[TEST]).spread, expected)
    importances = cs.view_importances(model, X[TEST], pd.Series(TARGET, index=IDS).iloc[MIXED][IDS[TEST]])
    assert importances.score == pytest.approx(model.score(X[TEST], TARGET[TEST]))
    assert cs.certificate(model) == pipeline[-1].certificate()


def test_calibrated_classifiers_of_several_folds():
    model = CalibratedClassifierCV(scaled(ridge()), ensemble=True, cv=3).fit(X[TRAIN], LABELS[TRAIN])
    found = cs.view_importances(model, X[TEST], LABELS[TEST], scoring="neg_log_loss")
    one = X[TEST][X[TEST].present("a") & (X[TEST].mask.sum(axis=1) > 1)]
    of = pd.Series(LABELS, index=IDS)[one.sample_names].to_numpy() == "yes"
    logs = [np.log(model.predict_proba(each)[range(len(of)), of.astype(int)]).mean() for each in (one, one[["b", "c"]])]
    assert found.loss["a"] == pytest.approx(logs[0] - logs[1])
    weights = np.mean([fit.estimator[-1].view_weights_ for fit in model.calibrated_classifiers_], axis=0)
    assert found.weight == pytest.approx(dict(zip("abc", weights / weights.sum(), strict=True)))
    for look in (cs.certificate, lambda model: cs.view_agreement(model, X)):
        with pytest.raises(TypeError, match=r"has 3 estimators, one per fold, .*Fit it with ensemble=False"):
            look(model)
        member = model.calibrated_classifiers_[0].estimator
        assert str(look(member)) == str(look(member))


def test_views_that_a_pipeline_drops_or_makes():
    steps = {"a": StandardScaler(), "c": "drop"}
    model = make_pipeline(PerView(steps), ridge()).fit(X[TRAIN], LABELS[TRAIN])
    test = X[TEST][X[TEST].mask[:, :2].any(axis=1)]  # the others have no view that reaches the estimator
    y = pd.Series(LABELS, index=IDS)[test.sample_names].to_numpy()
    found = cs.view_importances(model, test, y)
    assert list(found.loss) == list(found.weight) == ["a", "b"]
    both = test[test.mask[:, :2].all(axis=1)]
    of = pd.Series(LABELS, index=IDS)[both.sample_names].to_numpy()
    assert found.n_samples == {"a": len(both), "b": len(both)}
    assert found.loss["a"] == pytest.approx(model.score(both, of) - model.score(both[["b", "c"]], of))

    def joined(X):
        return X[["a"]] | X[["b"]].renamed({"b": "other"})

    first = FunctionTransformer(joined)
    whole = Views(FRAMES)
    makes = make_pipeline(first, ridge()).fit(whole[TRAIN], LABELS[TRAIN])
    assert list(cs.view_agreement(makes, whole[TEST]).votes[0]) == [
        "yes" if score > 0 else "no" for score in makes[-1].view_decision_function(joined(whole[TEST]))[0]
    ]
    with pytest.raises(TypeError, match=r"first step, FunctionTransformer, does not read views.*Give Views"):
        cs.view_importances(makes, FRAMES, LABELS)


def test_unlabeled_samples_are_not_scored():
    model = GridSearchCV(scaled(ridge()), in_pipeline(GRID), cv=3, scoring="accuracy").fit(X[TRAIN], LABELS[TRAIN])
    y = LABELS[TEST].astype(object)
    y[:4] = None
    found = cs.view_importances(model, X[TEST], y)
    assert found.score == model.score(X[TEST][4:], LABELS[TEST][4:])
    with pytest.raises(ValueError, match="X has 30 samples, but y has 3"):
        cs.view_importances(model, X[TEST], y[:3])


def test_wide_frames_and_dicts_reach_the_first_step():
    wide = pd.concat([frame.add_prefix(f"{name}__") for name, frame in FRAMES.items()], axis=1)
    divided = PerView(StandardScaler(), views="prefix")
    model = make_pipeline(divided, ridge()).fit(wide[TRAIN], LABELS[TRAIN])
    expected = scaled(ridge()).fit(Views(FRAMES)[TRAIN], LABELS[TRAIN])
    y = pd.Series(LABELS, index=IDS)
    of_frame, of_dict, of_views = (
        cs.view_importances(model, wide.iloc[MIXED], y),
        cs.view_importances(expected, {name: frame.iloc[MIXED] for name, frame in FRAMES.items()}, y),
        cs.view_importances(expected, Views(FRAMES), LABELS),
    )
    assert of_frame == of_dict == of_views
    assert cs.view_agreement(model, wide.iloc[MIXED]).sample_names.tolist() == [IDS[k] for k in MIXED]
    arrays = {name: frame.to_numpy() for name, frame in FRAMES.items()}
    assert cs.view_agreement(ridge().fit(arrays, LABELS), arrays).sample_names is None


def test_names_that_a_step_drops_are_those_of_the_samples():
    bare = FunctionTransformer(lambda X: Views({name: np.nan_to_num(X[name]) for name in X.names}))
    model = make_pipeline(bare, cs.KernelPerceptron(RBF(0.1), random_state=0)).fit(X, LABELS)
    y = pd.Series(LABELS, index=IDS).iloc[MIXED]
    direct = model[-1].certificate(bare.transform(X), LABELS)
    assert cs.certificate(model, X, y) == direct
    assert model[-1].certificate(bare.transform(X), y.to_numpy()).bound != direct.bound
    ridges = make_pipeline(bare, ridge()).fit(X, LABELS)
    assert cs.view_agreement(ridges, X).sample_names.tolist() == IDS


def test_an_online_estimator_in_a_pipeline_has_its_certificate():
    model = scaled(cs.KernelPerceptron(RBF(0.1), random_state=0)).fit(X, LABELS)
    assert cs.certificate(model) == model[-1].certificate()
    expected = model[-1].certificate(model[0].transform(X), LABELS)
    assert cs.certificate(model, X, pd.Series(LABELS, index=IDS).iloc[MIXED]) == expected


REFUSED = {
    r"Pipeline\) learns from all views together and has no `view_decision_function`. Give a batch": lambda: (
        cs.view_agreement(scaled(cs.OnlinePerceptron()).fit(X, LABELS), X)
    ),
    r"LogisticRegression \(inside Pipeline\) has no `view_weights_`. Give a fitted estimator of views": lambda: (
        cs.view_importances(make_pipeline(LogisticRegression()).fit(FRAMES["a"], LABELS), X, LABELS)
    ),
    "GridSearchCV has refit=False, so it has no fitted estimator. Fit it again": lambda: cs.certificate(
        GridSearchCV(scaled(ridge()), in_pipeline(GRID), cv=3, refit=False).fit(X, LABELS)
    ),
    "VotingClassifier has no `certificate`.*Of an ensemble, give one member": lambda: cs.certificate(
        VotingClassifier([("one", ridge())]).fit(X, LABELS)
    ),
    "The first step, ColumnTransformer, does not read views": lambda: cs.view_importances(
        make_pipeline(
            ColumnTransformer([("a", StandardScaler(), ["u", "v"])]).set_output(transform="pandas"),
            cs.CoRegularizedRidgeClassifier(RBF(0.1), views="prefix"),
        ).fit(FRAMES["a"], LABELS),
        FRAMES["a"],
        LABELS,
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_models_without_views_get_a_remedy(message):
    with pytest.raises(TypeError, match=message):
        REFUSED[message]()


def test_models_that_are_not_fitted_say_so():
    for model in (ridge(), scaled(ridge()), GridSearchCV(scaled(ridge()), in_pipeline(GRID))):
        for look in (cs.certificate, lambda model: cs.view_agreement(model, X)):
            with pytest.raises(NotFittedError, match="CoRegularizedRidgeClassifier instance is not fitted"):
                look(model)


def test_targets_with_other_names_are_refused():
    model = scaled(ridge()).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"The index of y .* is not that of the samples"):
        cs.view_importances(model, X, pd.Series(LABELS, index=[f"q{k}" for k in range(N)]))


# -- equal error rates
def test_pairs_of_series_are_matched_by_name():
    scores = pd.Series(SIGN + RNG.normal(size=N), index=IDS)
    y = pd.Series(LABELS, index=IDS)
    assert cs.equal_error_rate(y.iloc[MIXED], scores) == cs.equal_error_rate(LABELS, scores.to_numpy())
    assert cs.equal_error_rate(y, scores.reset_index(drop=True)) == cs.equal_error_rate(y, scores)
    with pytest.raises(ValueError, match="The index of y"):
        cs.equal_error_rate(y.reset_index(drop=True), scores)


def test_equal_error_rates():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    scores = rng.normal(size=(400, 3)) + 1.5 * np.eye(3)[y]
    for t in range(3):
        rate = cs.equal_error_rate(y, scores, positive=t)
        thresholds = [np.inf, *np.sort(scores[:, t])]
        errors = [max((scores[y != t, t] >= c).mean(), (scores[y == t, t] < c).mean()) for c in thresholds]
        assert min(errors) - 0.02 < rate <= min(errors) + 1e-12
    assert cs.equal_error_rate(y == 0, scores[:, 0]) == cs.equal_error_rate(y, scores[:, 0], positive=0)
    assert cs.equal_error_rate([0, 0, 1, 1], [3.0, 3.0, 3.0, 3.0]) == 0.5
    assert cs.equal_error_rate([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], positive=0) == 0.0
    assert cs.equal_error_rate([0, 0, 1, 1], [4.0, 3.0, 2.0, 1.0]) == 1.0


@pytest.mark.parametrize(
    ("y", "scores", "positive", "message"),
    [
        ([0, 0], [1.0, 2.0], None, "needs samples of two classes; y has only '0'"),
        ([0, 1, 2], [1.0, 2.0, 3.0], None, "y has 3 classes. Choose one of them by `positive`"),
        ([0, 1], [1.0, 2.0], 5, "`positive` must be a class of y, '0', '1'; got 5"),
        ([0, 1], [[1.0, 2.0, 3.0]] * 2, None, "`scores` has 3 columns and y has 2 classes"),
        ([0, 1], [1.0, np.nan], None, "must be finite, one per sample"),
    ],
)
def test_scores_without_an_equal_error_rate_raise(y, scores, positive, message):
    with pytest.raises(ValueError, match=message):
        cs.equal_error_rate(y, scores, positive=positive)
