"""What online estimators accept and refuse, and what `fit` does with it."""

import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from online_cases import ALL, same_state, stream
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Perceptron

import consilience as cs
from consilience import Views
from consilience.kernels import RBF, Linear
from consilience.online._binary_steps import binary_pass
from consilience.online._steps import linear_pass


@pytest.mark.parametrize("name", ALL)
def test_fit_converges_where_samples_are_separated_and_is_whole(name):
    X, y = stream(0, n=40, widths=(4, 4))
    far = Views({v: X[v] + 12 * (2 * y - 1)[:, None] for v in X.names})
    model = clone(ALL[name]).set_params(max_iter=200, random_state=0)
    if "budget" in name:
        model.set_params(budget=40)
    model.fit(far, y)
    if "norm" not in name and name not in ("PA-II", "cues", "cues of perceptrons", "budget of PA", "aggressive"):
        assert model.converged_
        assert model.n_samples_seen_ < 200 * 40
    assert model.score(far, y) == 1
    before = model.decision_function(far)
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit({v: np.where(X[v] > 1, np.inf, X[v]) for v in X.names}, y)
    np.testing.assert_array_equal(model.decision_function(far), before)
    again = clone(model).fit(far, y)
    np.testing.assert_array_equal(again.decision_function(far), before)


def test_any_online_estimator_is_a_cue():
    X, y = stream(4, n=150, n_classes=3)
    given = {"v0": cs.OrthogonalPerceptron(RBF(0.2)), "v1": cs.VectorPerceptron(RBF(0.2))}
    model = cs.MultiCueClassifier(estimator=given, random_state=0).fit(X, y)
    assert {name: type(part) for name, part in model.estimators_.items()} == {v: type(e) for v, e in given.items()}
    assert model.score(X, y) > 0.6


def test_precomputed_views_are_looked_up():
    X, y = stream(4, n=120)
    K = RBF(0.2)(X["v0"])
    for kind in (cs.KernelPerceptron, cs.OrthogonalPerceptron, cs.PassiveAggressive, cs.Projectron):
        given_rows = Views({"v0": K}, precomputed=True)
        vectors = kind(RBF(0.2), shuffle=False).fit(X[["v0"]][:80], y[:80])
        rows = kind("precomputed", shuffle=False).fit(given_rows[:80], y[:80])
        square = kind("precomputed", shuffle=False).fit(K[:80, :80], y[:80])
        assert vectors.n_samples_seen_ >= 80
        expected = vectors.decision_function(X[["v0"]][80:])
        np.testing.assert_allclose(rows.decision_function(given_rows[80:]), expected, atol=1e-7)
        np.testing.assert_allclose(square.decision_function(K[80:, :80]), expected, atol=1e-7)
    stream_of_rows = cs.KernelPerceptron("precomputed", average=True)
    for rows in np.split(np.arange(80), range(9, 80, 9)):
        stream_of_rows.partial_fit(given_rows[rows], y[rows], classes=[0, 1])
    once = cs.KernelPerceptron(RBF(0.2), average=True).partial_fit(X[["v0"]][:80], y[:80], classes=[0, 1])
    np.testing.assert_allclose(
        stream_of_rows.decision_function(given_rows[80:]), once.decision_function(X[["v0"]][80:]), atol=1e-9
    )
    vector = cs.VectorPerceptron("precomputed", shuffle=False).fit(K[:80, :80], y[:80])
    same = cs.VectorPerceptron(RBF(0.2), shuffle=False).fit(X["v0"][:80], y[:80])
    np.testing.assert_allclose(vector.decision_function(K[80:, :80]), same.decision_function(X["v0"][80:]), atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_one_class_one_sample_and_no_column_that_speaks(name):
    X, y = stream(0, n=12)
    alone = clone(ALL[name]).partial_fit(X[:1], ["only"])
    assert alone.predict(X).tolist() == ["only"] * 12
    zeros = Views({v: np.zeros((12, 4)) for v in X.names})
    model = clone(ALL[name]).partial_fit(zeros, y, classes=[0, 1])
    assert np.isfinite(model.decision_function(X)).all()


# -- refused
# an estimator, the parameter that is out of range, and what it must be
PARAMETERS = [
    (cs.OnlinePerceptron(1.5), "p", "a float in the range [2.0, inf). Got 1.5"),
    (cs.MatrixPerceptron(p=np.inf), "p", "a float in the range [1.0, inf). Got inf"),
    (cs.OnlinePerceptron(average="mean"), "average", ""),
    (cs.Projectron(average="voted"), "average", ""),
    (cs.OnlinePerceptron(eta0=0), "eta0", "a float in the range (0.0, inf). Got 0"),
    (cs.VectorPerceptron(margin=0), "margin", "a float in the range (0.0, inf). Got 0"),
    (cs.PassiveAggressive(C=0), "C", "a float in the range (0.0, inf]. Got 0"),
    (cs.OnlinePerceptron(max_iter=0), "max_iter", "an int in the range [1, inf). Got 0"),
    (cs.PassiveAggressive(variant="PA-3"), "variant", "a str among {"),
    (cs.OrthogonalPerceptron(variant=True), "variant", "a str among {"),
    (cs.Projectron(variant="++"), "variant", "a str among {"),
    (cs.VectorPerceptron(variant="primal"), "variant", "a str among {"),
    (cs.MatrixPerceptron(unequal="cut"), "unequal", "a str among {"),
    (cs.KernelPerceptron(budget=0), "budget", "an int in the range [1, inf), a str among {'auto'} or None. Got 0"),
]
REFUSED = {
    **{
        f"The {name!r} parameter of {type(model).__name__} must be {text}": model.fit
        for model, name, text in PARAMETERS
    },
    "average='voted' keeps every update, but budget=9 limits them.": cs.KernelPerceptron(budget=9, average="voted").fit,
    "`prior_norms` must be at least 0 and finite; got -1 for the view 'v0'.": (
        cs.OrthogonalPerceptron(prior_norms={"v0": -1}).fit
    ),
    "`prior_norms` names the view 'zz'; the views are 'v0', 'v1'.": cs.OrthogonalPerceptron(prior_norms={"zz": 3}).fit,
    "`output_kernel` must be a positive semi-definite matrix between the 2 classes": (
        cs.KernelPerceptron(output_kernel=np.eye(3)).fit
    ),
    "or a dict of them; got Perceptron for every view.": cs.MultiCueClassifier(estimator=Perceptron()).fit,
    "or a dict of them; got str for v1.": cs.MultiCueClassifier(estimator={"v1": "perceptron"}).fit,
    "has 2 columns, the widest view so far 4: the matrix perceptron needs views of one width. Use Orthogonal": (
        lambda X, y: cs.MatrixPerceptron().fit({"a": X["v0"], "b": X["v1"][:, :2]}, y)
    ),
    "View 'v0' holds objects; OnlinePerceptron is linear here and needs numbers.": (
        lambda X, y: cs.OnlinePerceptron().fit({"v0": ["a"] * len(y)}, y)
    ),
    "View 'v0': RBF(gamma='median') takes a parameter from the data, which a stream does not have at once.": (
        lambda X, y: cs.KernelPerceptron(RBF("median")).partial_fit(X, y)
    ),
    "`output_kernel` is between all classes: announce them": (
        lambda X, y: cs.KernelPerceptron(output_kernel=np.eye(2)).partial_fit(X, y)
    ),
    "The labels of this chunk are strings": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y).partial_fit(X[:1], ["a"])
    ),
    "`classes` are '0', '9' now, but '0', '1' at the first call.": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y, classes=[0, 1]).partial_fit(X, y, classes=[0, 9])
    ),
    "The class 1 was not announced; the classes are '0', '5'.": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y, classes=[0, 5])
    ),
    "The class 1 was not announced; the classes are '0'. Give all classes by `classes=` at the first call of partial": (
        lambda X, y: cs.VectorPerceptron().learn_one({"a": X["v0"][0]}, 0).learn_one({"a": X["v0"][0]}, 1)
    ),
    "View 'view0' must be a Gram matrix, and a stream needs kernels between samples of all chunks.": (
        lambda X, y: cs.KernelPerceptron("precomputed").partial_fit(X["v0"] @ X["v0"].T, y)
    ),
    "`average` was False when learning began and is True now. Set it back": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y).set_params(average=True).predict(X)
    ),
    "`p` was 2.0 when learning began and is 3 now.": (
        lambda X, y: cs.OrthogonalPerceptron().partial_fit(X, y).set_params(p=3).partial_fit(X, y)
    ),
    "`variant` was 'perceptron' when learning began and is 'passive-aggressive' now.": (
        lambda X, y: cs.OrthogonalPerceptron().partial_fit(X, y).set_params(variant="passive-aggressive").predict(X)
    ),
    "View 'v0' has values up to 1e+200; above 1.34e+148 their squares and sums can overflow. Scale it.": (
        lambda X, y: cs.MatrixPerceptron().partial_fit({"v0": np.where(X["v0"] > 1, 1e200, X["v0"])}, y)
    ),
    "`comparator` has 3 outputs; for these targets it needs 1.": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y).certificate(X, y, comparator=np.ones((len(y), 3)))
    ),
    "must be an array of coefficients, one for each of the 40 samples.": (
        lambda X, y: cs.KernelPerceptron().partial_fit(X, y).certificate(X, y, comparator=np.ones(3))
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_input_is_refused_in_a_sentence(message):
    X, y = stream(0, n=40)
    y[:2] = [0, 1]
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        REFUSED[message](X, y)


# -- what was learned
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_intercepts_are_what_the_scores_add_to_the_views(n_classes, average):
    X, y = stream(0, n=90, n_classes=n_classes)
    nothing = Views({v: np.zeros((1, 4)) for v in X.names})
    for model in (
        cs.OnlinePerceptron(average=average), cs.OnlinePerceptron(3, average=average),
        cs.PassiveAggressive(fit_intercept=True, average=average),
        cs.KernelPerceptron(Linear(), fit_intercept=True, average=average),
        cs.Projectron(Linear(), fit_intercept=True, average=average),
    ):  # fmt: skip
        model.set_params(random_state=0).fit(X, y)
        assert model.intercept_.shape == (1 if n_classes == 2 else n_classes,)
        assert abs(model.intercept_).max() > 0
        scores = np.atleast_1d(np.squeeze(model.decision_function(nothing)))
        np.testing.assert_allclose(scores, model.intercept_, atol=1e-9)
        without = clone(model).set_params(fit_intercept=False).fit(X, y)
        assert not without.intercept_.any()


def test_linear_kernels_have_weights_and_others_samples():
    X, y = stream(0)
    linear, kernels = cs.OrthogonalPerceptron().fit(X, y), cs.OrthogonalPerceptron(RBF(0.2)).fit(X, y)
    assert sorted(linear.coef_) == ["v0", "v1"]
    assert len(kernels.support_) == len(kernels.dual_coef_)
    with pytest.raises(AttributeError, match=r"has `coef_`, since it is linear, with .*, not `support_`"):
        _ = linear.support_
    with pytest.raises(AttributeError, match="has `support_` and `dual_coef_` with these parameters, not `coef_`"):
        _ = kernels.coef_
    assert not hasattr(cs.MultiCueClassifier(RBF(0.2)).fit(X, y), "coef_")
    assert not hasattr(cs.VectorPerceptron().fit(X, y), "support_")


def test_views_without_an_estimator_have_projectrons():
    X, y = stream(4, n=60, n_classes=3)
    model = cs.MultiCueClassifier(RBF(0.2), threshold=0.7, estimator={"v1": cs.OnlinePerceptron(p=3)}).fit(X, y)
    assert repr(model.estimators_["v0"]) == repr(cs.Projectron(RBF(0.2), threshold=0.7))
    assert repr(model.estimators_["v1"]) == repr(cs.OnlinePerceptron(p=3))
    assert model.get_params()["estimator__v1__p"] == 3
    assert model.set_params(estimator__v1__p=4).estimator["v1"].p == 4


def test_booleans_of_numpy_are_booleans():
    X, y = stream(0)
    for estimator in (cs.OnlinePerceptron(), cs.OnlinePerceptron(3), cs.KernelPerceptron(RBF(0.2)), cs.Projectron()):
        ours, theirs = (clone(estimator).set_params(average=kind(True)).partial_fit(X, y) for kind in (bool, np.bool_))
        np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


@pytest.mark.parametrize("variant", ["operator", "coefficients"])
@pytest.mark.parametrize("kernel", ["linear", RBF(0.2)], ids=str)
def test_margins_of_the_vector_perceptron_are_those_of_its_operator(kernel, variant):
    X, y = stream(3, n=60, n_classes=3)
    model = cs.VectorPerceptron(kernel, variant=variant, eta0=0.1, max_iter=3, shuffle=False).fit(X, y)
    A, own = model.class_vectors_ @ model.class_vectors_.T, model.decision_function(X)[np.arange(60), y]
    if model.coef_:
        squared = sum(np.sum(A * (V.T @ V)) for V in model.coef_.values())
    else:  # ‖W‖² = Σ_ij α_i α_j <y_i, y_j> k_ij, and the sums over j are the scores
        squared = model.dual_coef_ @ own[model.support_]
    assert bool(model.coef_) == (kernel == "linear" and variant == "operator")
    assert model.certificate(X, y).margin == pytest.approx(own.min() / np.sqrt(squared), rel=1e-9)


def test_odd_cases_that_work():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    for kind in (cs.KernelPerceptron, cs.Projectron, cs.MatrixPerceptron, cs.OnlinePerceptron, cs.MultiCueClassifier):
        waiting = kind().partial_fit(A, [None] * 40, classes=[0, 1])
        assert (waiting.decision_function(A) == 0).all()
    proof = cs.PassiveAggressive(C=np.inf).partial_fit(A, y).certificate(A, y, comparator=np.zeros(40))
    assert proof.bound >= 40
    cues = cs.MultiCueClassifier(estimator=cs.VectorPerceptron()).partial_fit(A, y)
    assert cues.classes_.tolist() == [0, 1]
    nested = cs.MultiCueClassifier(estimator=cs.MultiCueClassifier(estimator=cs.OnlinePerceptron()))
    assert nested.partial_fit(A, y).partial_fit(A, np.arange(40) % 3).n_samples_seen_ == 80
    kappa = np.eye(2)
    model = cs.KernelPerceptron(output_kernel=kappa).fit(A, y)
    before = model.decision_function(A)
    kappa[:] = 7
    np.testing.assert_array_equal(model.decision_function(A), before)
    mixed = cs.OnlinePerceptron()
    for i in range(40):
        mixed.learn_one({"a": A[i].astype(np.float32 if i < 10 else np.float64)}, y[i])
    assert mixed._machine.V.dtype == np.float64


def test_the_vector_perceptron_predicts_in_blocks():
    own = np.random.default_rng(0)
    model = cs.VectorPerceptron("rbf", random_state=0, max_iter=1)
    model.fit(own.normal(size=(1200, 4)), own.integers(3, size=1200))
    assert len(model.support_) > 800
    new = own.normal(size=(20_000, 4))
    few = np.concatenate([model.decision_function(new[i : i + 1000]) for i in range(0, 3000, 1000)])
    tracemalloc.start()
    scores = model.decision_function(new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    np.testing.assert_allclose(scores[:3000], few, atol=1e-12)


NEVER_MET = {
    **{name: ALL[name] for name in ("perceptron", "3-norm", "kernel perceptron", "projectron", "cues", "orthogonal 2")},
    "vector perceptron": cs.VectorPerceptron(),
    "ridge": cs.CoRegularizedRidgeClassifier(),
    "margin": cs.MaxMarginClassifier(),
    "metric": cs.ViewMetricRidgeClassifier(),
    "early": cs.EarlyFusion(LogisticRegression()),
    "late": cs.LateFusion(LogisticRegression()),
}


@pytest.mark.parametrize("name", NEVER_MET)
def test_rows_with_only_views_that_nothing_was_learned_from_are_named(name):
    X, y = stream(0, n=40)
    mask = {"v1": np.zeros(40, dtype=bool)}
    model = clone(NEVER_MET[name]).fit(Views(X, mask=mask), y)
    new = Views(X[:6], mask={"v0": np.arange(6) != 4, "v1": np.ones(6, dtype=bool)})
    kind = type(model).__name__
    uses = [getattr(model, use, model.predict) for use in ("predict", "decision_function", "view_decision_function")]
    for use in uses:
        with pytest.raises(ValueError, match=rf"4 .*none of the views that {kind} learned from, 'v0'. Leave such"):
            use(new)
    assert np.array_equal(model.predict(new[[0, 1, 2, 3, 5]]), model.predict(X[[0, 1, 2, 3, 5]][["v0"]]))


@pytest.mark.parametrize(
    "name", ["perceptron", "3-norm", "matrix 2", "orthogonal 2", "kernel perceptron", "projectron"]
)
def test_a_view_of_none_only_is_a_missing_view(name):
    X, y = stream(0, n=12)
    y[:2] = [0, 1]
    model = clone(ALL[name]).partial_fit({"v0": X["v0"][:6], "v1": [None] * 6}, y[:6], classes=[0, 1])
    model.partial_fit(X[6:], y[6:]).partial_fit({"v0": X["v0"][:6], "v1": [None] * 6}, y[:6])
    same = clone(ALL[name]).partial_fit({"v0": X["v0"][:6]}, y[:6], classes=[0, 1])
    same.partial_fit(X[6:], y[6:]).partial_fit({"v0": X["v0"][:6]}, y[:6])
    same_state(model, same, X)
    none = {"v0": X["v0"], "v1": [None] * 12}
    np.testing.assert_array_equal(model.decision_function(none), same.decision_function({"v0": X["v0"]}))


@pytest.mark.parametrize("x", [None, 3, "text", [1.0, 2.0], [("a", [1.0])]])
@pytest.mark.parametrize("prepare", [None, {"a": "hash"}])
def test_a_sample_that_is_not_a_dict_is_refused(x, prepare):
    model = cs.PassiveAggressive(prepare=prepare).learn_one({"a": ["u"] if prepare else [1.0]}, 0)
    before = model.n_samples_seen_
    for call in (lambda: model.learn_one(x, 1), lambda: model.predict_one(x), lambda: model.snapshot().predict_one(x)):
        with pytest.raises(TypeError, match="A sample is a dict of the rows of its views by name; got "):
            call()
    assert model.n_samples_seen_ == before


def test_a_number_in_a_map_that_no_float_holds_is_refused():
    model = cs.PassiveAggressive(prepare={"a": "hash"}).learn_one({"a": {"x": 1.0}}, 0)
    for call in (lambda x: model.learn_one(x, 1), model.predict_one):
        with pytest.raises(ValueError, match="View 'a': A map has a number for the key 'x' that no float64 holds"):
            call({"a": {"x": -(10**400)}})
    assert model.n_samples_seen_ == 1


def test_samples_that_cannot_be_written_compile_nothing_again():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    fixed = X.copy()
    fixed.flags.writeable = False
    sparse = sp.csr_array(fixed)
    for part in (sparse.data, sparse.indices):
        part.flags.writeable = False
    for loop, estimator in ((binary_pass, cs.PassiveAggressive()), (linear_pass, cs.MatrixPerceptron())):
        estimator.partial_fit({"a": X}, y, classes=[0, 1])
        known = len(getattr(loop, "signatures", ()))  # none with the compiler off
        estimator.partial_fit({"a": fixed}, y).partial_fit({"a": sparse}, y).learn_one({"a": fixed[0]}, 0)
        assert len(getattr(loop, "signatures", ())) == known


@pytest.mark.parametrize("prepare", [None, "standardize"])
@pytest.mark.parametrize("row", [np.ones((2, 2)), np.ones((4, 1)), np.ones((1, 2, 2)), sp.csr_array(np.ones((2, 2)))])
def test_a_sample_has_one_row_of_a_view(row, prepare):
    model = cs.PassiveAggressive(prepare=prepare)
    message = re.escape(f"View 'a' of a sample is one row; got an array of shape {row.shape}")
    with pytest.raises(ValueError, match=message):
        model.learn_one({"a": row}, 0)
    for known in (np.ones(4), np.ones((1, 4)), [1, 1, 1, 1]):
        model.learn_one({"a": known}, 0)
    for call in (model.predict_one, lambda x: model.learn_one(x, 0)):
        with pytest.raises(ValueError, match=message):
            call({"a": row})
    assert model.n_samples_seen_ == 3


@pytest.mark.parametrize("name", ALL)
def test_weights_are_matched_by_name(name):
    X, y = stream(4, n=40)
    names, mixed = [f"s{i}" for i in range(40)], np.random.default_rng(1).permutation(40)
    named, w = Views(X, sample_names=names), pd.Series(10.0 ** np.random.default_rng(2).uniform(-2, 1, 40), index=names)
    model = clone(ALL[name]).set_params(random_state=0)
    for method in ("fit", "partial_fit"):
        one, other = (getattr(clone(model), method)(named, y, sample_weight=given) for given in (w, w.iloc[mixed]))
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
        assert one.score(named, y, w) == one.score(named, y, w.iloc[mixed])
    with pytest.raises(ValueError, match="The index of sample_weight"):
        clone(model).fit(named, y, sample_weight=w.rename({"s0": "other"}))


def test_weights_of_streams_and_rankings_are_matched_by_name():
    X, y = stream(4, n=40)
    names, mixed = [f"s{i}" for i in range(40)], np.random.default_rng(1).permutation(40)
    named, w = Views(X, sample_names=names), pd.Series(10.0 ** np.random.default_rng(2).uniform(-2, 1, 40), index=names)
    truth = pd.Series(y, index=names)
    runs = [
        cs.progressive_validation(cs.PassiveAggressive(), samples, given, sample_weight=weights)
        for samples in (named, {v: pd.DataFrame(X[v], index=names) for v in X.names})
        for given, weights in ((truth, w), (truth.iloc[mixed], w.iloc[mixed]))
    ]
    assert len({run.error for run in runs}) == 1
    ranking = cs.RankingPerceptron(joint_kernel=(Linear(), None), candidates=range(2), shuffle=False).fit(named, truth)
    assert ranking.score(named, truth.iloc[mixed]) == ranking.score(X, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("prepare", [None, "standardize", ["impute", "standardize"]])
@pytest.mark.parametrize("kind", [cs.PassiveAggressive, cs.KernelPerceptron, cs.MatrixPerceptron])
def test_rows_with_names_are_read_by_name(kind, prepare):
    X, y = stream(3, n=30, widths=(3, 3))
    frames = {v: pd.DataFrame(X[v] * [1, 10, 100], columns=list("pqr")) for v in X.names}
    turned = {v: frame[frame.columns[::-1]] for v, frame in frames.items()}
    forms = {
        "series": lambda frame, i: frame.iloc[i],
        "frame": lambda frame, i: frame.iloc[[i]],
        "polars": lambda frame, i: pl.from_pandas(frame)[i],
        "dict": lambda frame, i: frame.iloc[i].to_dict(),
        "json": lambda frame, i: {**frame.iloc[i].to_dict(), "q": int(frame["q"].iloc[i])},
    }
    for name, form in forms.items():
        table = {v: frame.assign(q=frame["q"].astype(int)) for v, frame in frames.items()} if name == "json" else frames
        plain, named = kind(prepare=prepare), kind(prepare=prepare)
        for model in (plain, named):
            model.partial_fit({v: frame[:10] for v, frame in table.items()}, y[:10], classes=[0, 1])
        for i in range(10, 30):
            plain.partial_fit({v: frame[i : i + 1] for v, frame in table.items()}, y[i : i + 1])
            named.learn_one({v: form(frame, i) for v, frame in turned.items()}, y[i])
        same_state(plain, named, Views(table))
        expected = plain.predict(table)
        for served in (named, named.snapshot()):
            found = [served.predict_one({v: form(frame, i) for v, frame in turned.items()}) for i in range(30)]
            np.testing.assert_array_equal(found, expected)


def test_a_dict_of_named_values_is_a_row_of_a_view():
    model = cs.PassiveAggressive(prepare=["impute", "standardize"])
    rows = [{"age": 1.0, "sex": "F"}, {"sex": "M", "age": 3.0}, {"age": None, "sex": "F"}]
    for k, row in enumerate(rows):  # the first sample too
        model.learn_one({"a": row}, k % 2)
    with pytest.warns(UserWarning, match="the category 'sex=X'"):
        model.predict_one({"a": {"sex": "X", "age": 1.0}})
    with pytest.raises(ValueError, match="View 'a' has no column 'dose'"):
        cs.PassiveAggressive().learn_one({"a": {"age": 1.0, "dose": 2.0}}, 0).predict_one({"a": {"age": 1.0}})
    with pytest.raises(ValueError, match="different names"):
        model.predict_one({"a": pd.Series([1.0, 2.0], index=["age", "age"])})
    with pytest.raises(ValueError, match="different names"):
        model.predict_one({"a": {1: 2.0, "1": 3.0}})
    with pytest.raises(ValueError, match=r"one row; got an array of shape \(2, 1\)"):
        model.predict_one({"a": pd.DataFrame({"age": [1.0, 2.0]})})
    counts = cs.PassiveAggressive(prepare={"a": "hash"}).learn_one({"a": {"cat": 2}}, 0)  # a map of tokens
    assert counts.learn_one({"a": {"dog": 1, "cow": 3}}, 1).n_samples_seen_ == 2


def test_a_transformer_of_single_rows_reads_names():
    frame = pd.DataFrame({"p": [1.0, 2.0, 4.0], "q": [10.0, 30.0, 20.0]})
    prepare, same = (cs.PerView("standardize") for _ in range(2))
    prepare.partial_fit({"a": frame}), same.partial_fit({"a": frame})
    row = frame[["q", "p"]].iloc[1]
    for one in (row, row.to_dict(), row.to_frame().T):
        np.testing.assert_array_equal(
            prepare.transform_one({"a": one})["a"], prepare.transform({"a": frame[1:2]})["a"][0]
        )
        np.testing.assert_array_equal(
            prepare.learn_transform_one({"a": one})["a"], same.learn_transform({"a": frame[1:2]})["a"][0]
        )
    masked = np.ma.array([1.0, 2.0], mask=[False, True])  # a masked value is missing
    np.testing.assert_array_equal(
        prepare.transform_one({"a": masked})["a"], prepare.transform_one({"a": [1.0, np.nan]})["a"]
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("prepare", [None, "standardize"])
def test_rows_without_names_are_in_the_order_of_the_columns(prepare):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "dose": [2.0, 1.0, 0.0]})
    model = cs.PassiveAggressive(prepare=prepare).partial_fit({"a": frame}, [0, 0, 0])  # one class so far
    assert model.predict_one({"a": np.ones(2)}) == 0
    assert model.learn_one({"a": [1.0, 5.0]}, 1).predict_one({"a": [1.0, 5.0]}) in (0, 1)
    model.predict({"a": frame})  # whose names are known still


def test_a_remedy_is_a_parameter_that_the_estimator_has():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "dose": [2.0, 1.0, 0.0]})
    for model, has in ((cs.PassiveAggressive(), False), (cs.CoRegularizedRidgeClassifier(), True)):
        with pytest.raises(ValueError, match=r"has no column 'dose'.* Give them by these names") as caught:
            model.fit({"a": frame}, [0, 1, 0]).predict({"a": frame[["age"]]})
        assert ("missing_columns" in str(caught.value)) == has
