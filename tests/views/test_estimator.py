"""The base of estimators: labels, targets, weights, combining views, parameters by view, certificates."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import cases
import reference
import strategies
from consilience import (
    ConsensusRegressor,
    CoRegularizedRidge,
    EarlyFusion,
    KernelPerceptron,
    LateFusion,
    MultipleKernelRidge,
    MultipleKernelRidgeClassifier,
    OnlinePerceptron,
    Views,
)
from consilience.kernels import RBF, Laplacian, Linear
from consilience.online._counting import count
from consilience.solvers.certificates import STATUSES, Certificate, Solution, warn_unless_converged
from consilience.views.estimator import combine_views, decide
from consilience.views.validation import check_numbers, class_weights, read_labels, read_targets, read_weights

A = cases.histograms(40, 3)
B = cases.histograms(40, 5, seed=1)
V = Views(a=A, b=B)
y3 = np.arange(40) % 3
target = A[:, 0] - B[:, 1]


# kernel ridge on the sum of the kernels
ridge = partial(MultipleKernelRidge, p=np.inf)
classifier = partial(MultipleKernelRidgeClassifier, p=np.inf)


def fitted():
    return ridge().fit(V, target)


def stream():
    return OnlinePerceptron().partial_fit(V, y3, classes=[0, 1, 2])


# -- labels
LABELS = {
    "list": ["a", "b", None, "a"], "nan among strings": ["a", "b", float("nan"), "a"],
    "objects": np.array(["a", "b", None, "a"], dtype=object), "pandas": pd.Series(["a", "b", None, "a"]),
    "pandas NA": pd.Series(["a", "b", pd.NA, "a"], dtype="string"), "polars": pl.Series(["a", "b", None, "a"]),
    "pandas category": pd.Series(["a", "b", None, "a"], dtype="category"), "floats": [0.0, 2.0, np.nan, 0.0],
    "list with None": [0, 2, None, 0], "nullable": pd.Series([0, 2, None, 0], dtype="Int64"),
    "polars numbers": pl.Series([0, 2, None, 0]), "marked": [0, 2, -1, 0],
}  # fmt: skip


@pytest.mark.parametrize("form", LABELS)
def test_missing_labels_however_they_are_written(form):
    labels = read_labels(LABELS[form], 4, -1 if form == "marked" else None)
    assert labels.classes.tolist() == (["a", "b"] if LABELS[form][0] == "a" else [0, 2])
    assert labels.codes.tolist() == [0, 1, -1, 0]
    assert labels.labeled.tolist() == [True, True, False, True]


@pytest.mark.parametrize("values", [[1, "one"], [{1}, {2}], [True, "x"]], ids=str)
def test_labels_of_different_types_get_a_sentence(values):
    with pytest.raises(TypeError, match=r"cannot be sorted together|Labels are strings, numbers or booleans"):
        read_labels(values, 2)


def test_labels_keep_what_they_are():
    assert read_labels([2**60, 2**60 + 1, None], 3).classes.tolist() == [2**60, 2**60 + 1]
    assert read_labels(pa.array(["a", None, "b"]), 3).codes.tolist() == [0, -1, 1]
    assert read_labels([True, False, None], 3).classes.dtype == bool
    marked = pd.Series(["a", pd.NA, "?", "b"], dtype="string")
    assert read_labels(marked, 4, unlabeled="?").labeled.tolist() == [True, False, False, True]
    assert read_labels([-1, 1, 1], 3).classes.tolist() == [-1, 1], "-1 is a label unless it is asked for"
    with pytest.warns(DataConversionWarning, match=r"read as y.ravel\(\)"):
        assert read_labels(np.array([[0], [1]]), 2).codes.tolist() == [0, 1]


def test_signs_and_decisions():
    assert decide(np.array([-1.0, 0.0, 1.0]), 2).tolist() == [0, 0, 1]
    assert decide(np.array([[1.0, 3.0, 2.0]]), 3).tolist() == [1]
    assert decide(np.array([5.0, -5.0]), 1).tolist() == [0, 0]
    assert read_labels([0, 1, None], 3).signs().tolist() == [[-1], [1], [0]]
    assert read_labels([0, 1, 2, None], 4).signs().tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1], [0, 0, 0]]
    assert read_labels(["x", "x"], 2).signs().tolist() == [[1], [1]]


def test_targets_and_weights():
    Y, labeled = read_targets([1.0, np.nan, 3.0], 3)
    assert Y.shape == (3, 1)
    assert labeled.tolist() == [True, False, True]
    Y, labeled = read_targets(pd.DataFrame({"p": [1.0, None], "q": [2.0, None]}), 2)
    assert Y.shape == (2, 2)
    assert labeled.tolist() == [True, False]
    for form in ([1.0, None], [1.0, pd.NA], pd.Series([1, None], dtype="Int64"), pl.Series([1.0, None])):
        assert read_targets(form, 2)[1].tolist() == [True, False]
    assert read_weights(None, 3).tolist() == [1, 1, 1]
    assert read_weights(2, 3).tolist() == [2, 2, 2]
    labels = read_labels(["a", "a", "a", "b", None], 5)
    assert class_weights("balanced", labels, np.ones(5)).tolist() == [2 / 3, 2 / 3, 2 / 3, 2, 1]
    twice = class_weights("balanced", labels, np.array([1.0, 1.0, 1.0, 3.0, 9.0]))  # unlabeled ones do not count
    assert twice.tolist() == [1, 1, 1, 1, 1]
    assert class_weights({"b": 5}, labels, np.ones(5)).tolist() == [1, 1, 1, 5, 1]


@given(strategies.outputs_of_views())
def test_views_are_combined_as_defined(drawn):
    outputs, weights, present = drawn
    np.testing.assert_allclose(combine_views(outputs, weights, present), reference.combine(outputs, weights, present))
    holes = np.where(present[:, :, None], outputs, np.nan)
    np.testing.assert_array_equal(combine_views(holes, weights, present), combine_views(outputs, weights, present))


# -- estimators on the base
def test_with_one_view_it_equals_kernel_ridge():
    for weights in (None, np.arange(1, 31.0)):
        ours = ridge(RBF(0.5), alpha=0.3).fit(A[:30], target[:30], sample_weight=weights)
        theirs = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.3).fit(A[:30], target[:30], sample_weight=weights)
        np.testing.assert_allclose(ours.predict(A[30:]), theirs.predict(A[30:]))
    # outputs keep the shape of the targets
    assert fitted().predict(V).shape == (40,)
    assert ridge().fit(V, target[:, None]).predict(V).shape == (40, 1)
    assert ridge().fit(V, np.column_stack([target, target])).predict(V).shape == (40, 2)
    assert fitted().view_decision_function(V).shape == (40, 2)
    assert classifier().fit(V, y3).view_decision_function(V).shape == (40, 2, 3)
    assert classifier().fit(V, y3 == 0).decision_function(V).shape == (40,)
    assert ridge().fit(V[[0]], [2.0]).predict(V[[0]]).shape == (1,)
    # a plain array reaches a model of one named view
    model = ridge().fit(Views(audio=A), target)
    np.testing.assert_allclose(model.predict(A), model.predict(Views(audio=A)))


# estimator, parameters set together, the parameter they are part of, how it then reads
PARAMETERS = [
    ({"a": RBF(0.5), "b": "rbf"}, {"kernel__a__gamma": 2.0, "kernel__b__gamma": 3.0, "alpha": 1.0},
     "{'a': RBF(gamma=2.0), 'b': RBF(gamma=3.0)}"),
    ({"a": RBF(0.5)}, {"kernel__a": Linear()}, "{'a': Linear()}"),
    ("rbf", {"kernel__gamma": 0.1}, "RBF(gamma=0.1)"),
    (RBF(0.5) + Linear(), {"kernel__k1__gamma": 9.0}, "RBF(gamma=9.0) + Linear()"),
    ("rbf", {"kernel__gamma": 0.5, "kernel": Laplacian()}, "Laplacian(gamma=0.5)"),
    ("rbf", {"kernel__a__gamma": 0.5, "kernel": {"a": Laplacian()}}, "{'a': Laplacian(gamma=0.5)}"),
    ({"a": "rbf"}, {"kernel__a__gamma": 2.0, "kernel__a": RBF()}, "{'a': RBF(gamma=2.0)}"),
    ({"a": Linear(), "a__b": RBF()}, {"kernel__a__b__gamma": 2.0}, "{'a': Linear(), 'a__b': RBF(gamma=2.0)}"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "changes", "expected"), PARAMETERS, ids=[expected for *_, expected in PARAMETERS])
def test_kernels_by_view_can_be_set_and_searched(kernel, changes, expected):
    before = repr(kernel)
    model = ridge(kernel).set_params(**changes)
    assert repr(model.kernel) == expected
    assert model.get_params()[next(iter(changes))] == next(iter(changes.values()))
    assert not isinstance(kernel, dict) or repr(kernel) == before, "the dict given was changed"


def test_estimators_by_view_can_be_set():
    deep = LateFusion(LogisticRegression()).set_params(estimator__C=7, estimator=LogisticRegression(tol=0.5))
    assert (deep.estimator.C, deep.estimator.tol) == (7, 0.5)
    late = LateFusion({"a": LogisticRegression()}).set_params(estimator__a__C=5)
    assert late.estimator["a"].C == 5


def test_columns_are_held_against_fit_view_by_view():
    frames = {"g": RBF(0.5)(A), "b": pd.DataFrame(B, columns=list("pqrst"))}
    turned = {"g": frames["g"], "b": frames["b"][list("tsrqp")]}
    model = ridge(kernel={"g": "precomputed"}).fit(frames, target)
    learned = OnlinePerceptron().partial_fit({"b": frames["b"]}, y3).partial_fit({"b": B}, y3)
    np.testing.assert_array_equal(model.predict(turned), model.predict(frames))
    again = clone(learned).partial_fit({"b": frames["b"]}, y3).partial_fit({"b": turned["b"]}, y3)
    np.testing.assert_array_equal(again.coef_["b"], learned.coef_["b"])
    with pytest.raises(
        ValueError, match="View 'b' holds objects, but held numbers when MultipleKernelRidge was fitted"
    ):
        model.predict({"b": ["x"] * 40})
    frame = pd.DataFrame(A, columns=["a__x", "a__y", "a__z"])
    wide = ridge(views="prefix").fit(frame, target)
    np.testing.assert_array_equal(wide.predict(frame[["a__y", "a__x", "a__z"]]), wide.predict(frame))
    assert wide.predict({"a": A}).shape == (40,)
    ghost = ridge().fit(Views(a=A, ghost=None), target)
    with pytest.raises(ValueError, match="have only 'ghost', which every training sample lacked"):
        ghost.predict({"ghost": A})


def test_a_block_in_the_order_of_fit_is_read_so():
    K, order = RBF(0.5)(A), np.random.default_rng(0).permutation(40)
    expected = ridge(RBF(0.5)).fit(A[order[:30]], target[order[:30]]).predict(A)
    model = ridge("precomputed").fit(Views(g=K, precomputed=True)[order[:30]], target[order[:30]])
    np.testing.assert_allclose(model.predict(Views(g=K, precomputed=True)), expected)
    np.testing.assert_allclose(model.predict(Views(g=K[:, order[:30]])), expected)
    np.testing.assert_allclose(model.predict(Views(g=K)), expected)
    half = np.where(np.arange(30) % 3 == 0, np.nan, target[order[:30]])
    model.fit(Views(g=K, precomputed=True)[order[:30]], half)
    np.testing.assert_allclose(model.predict(Views(g=K[:, order[:30]])), model.predict(Views(g=K, precomputed=True)))


def test_a_plain_gram_with_missing_and_with_unlabeled_samples():
    K = RBF(0.5)(A)
    there = np.arange(40) % 5 > 0
    holes = np.where(there[:, None] & there, K, np.nan)
    model = ridge(kernel={"g": RBF(0.5)}).fit(Views({"g": A, "b": B}, mask={"g": there}), target)
    expected = model.predict({"g": A, "b": B})
    model = ridge(kernel={"g": "precomputed"}).fit(Views({"g": holes, "b": B}), target)
    np.testing.assert_allclose(model.predict({"g": K, "b": B}), expected)
    gone = np.where(there, K, np.nan)  # columns of training samples that lack the view
    np.testing.assert_allclose(model.predict({"g": gone, "b": B}), expected)
    # one with unlabeled samples is cut by rows and columns
    half = np.where(np.arange(40) % 4 == 0, np.nan, y3)
    some = np.flatnonzero(~np.isnan(half))
    expected = classifier(RBF(0.5)).fit(A[some], y3[some]).decision_function(A)
    np.testing.assert_allclose(classifier("precomputed").fit(K, half).decision_function(K), expected)
    gram = Views(g=K, precomputed=True)
    np.testing.assert_allclose(classifier("precomputed").fit(gram, half).decision_function(gram), expected)


def test_online_curve_counts_and_classes():
    model = stream()
    assert model.n_samples_seen_ == 40
    assert model.n_mistakes_ == round(model.error_curve_[-1, 1] * 40)
    assert model.error_curve_[:, 0].tolist() == list(range(1, 41))
    assert model.predict_one({"a": A[3]}) in (0, 1, 2)
    again = OnlinePerceptron(max_iter=2, shuffle=True, random_state=0).fit(V, y3)
    assert again.n_samples_seen_ == 80
    assert again.fit(V, y3).n_samples_seen_ == 80
    assert str(model.certificate()).startswith(f"{model.n_mistakes_} mistakes in 40 samples")
    # the curve of a long stream stays short
    for _ in range(200):
        count(model, np.zeros(5000, dtype=bool), np.zeros(5000, dtype=bool))
    assert model.n_samples_seen_ == 1_000_040
    assert len(model._curve) < 20_000
    assert np.all(np.diff(model.error_curve_[:, 0]) > 0)


ERRORS = [
    (lambda: classifier().fit(V, None), "requires y to be passed, but the target y is None"),
    (lambda: classifier().fit(V, [None] * 40), "y has no label at all: every value is missing."),
    (lambda: classifier().fit(V, [1, 2, 3]), "inconsistent numbers of samples: X has 40, y has 3."),
    (lambda: read_labels(np.ones((40, 2)), 40), "y must be 1d, one label per sample; got shape (40, 2)."),
    (lambda: classifier().fit(V, np.linspace(0, 1, 40)), "Unknown label type"),
    (lambda: ridge().fit(V, np.full(40, np.nan)), "y has no target at all: every value is NaN."),
    (lambda: read_targets([[1.0, np.nan], [1.0, 2.0]], 2), "Row 0 of y is NaN in some outputs only."),
    (lambda: ridge().fit(V, ["a"] * 40), "y must be numbers for regression"),
    (lambda: ridge().fit(V, np.full(40, np.inf)), "Input y contains infinity"),
    (lambda: ridge().fit(V, target, sample_weight=[1, 2, 3]), "must have shape (40,), one weight per sample; got"),
    (lambda: ridge().fit(V, target, sample_weight=-np.ones(40)), "sample_weight must be finite and at least 0"),
    (lambda: fitted().predict({"c": A}), "MultipleKernelRidge was fitted on the views 'a', 'b'; it does not know 'c'."),
    (lambda: fitted().predict({"b": B[:, :2]}), "View 'b' of X has 2 features, but MultipleKernelRidge is expecting 5"),
    (lambda: ridge().fit(V[[]], []), "Found array with 0 sample(s)"),
    (lambda: ridge({"a": "rbf"}).set_params(kernel__c__gamma=1), "names no part of `kernel`, which has 'a'."),
    (lambda: stream().partial_fit(V[:1], [7]), "class 7 was not announced; the classes are '0', '1', '2'."),
    (lambda: Solution(1, None, 1, "fine"), "A solution's status is one of converged, exact"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")
def test_predictions_that_overflow_name_the_first_such_sample():
    model = EarlyFusion(PoissonRegressor()).fit(V, A.sum(axis=1) * np.arange(40))  # predicts an exponential
    direction = model.estimator_.coef_[:3]
    large = A[:4] + 1e6 * np.outer([0, 0, 1, 1], direction / np.linalg.norm(direction) ** 2)
    with pytest.raises(ValueError, match="EarlyFusion has no finite prediction for sample 2: its values are too large"):
        model.predict(Views(a=large, b=B[:4]))


def test_nothing_works_before_fit():
    for method in (ridge().predict, ridge().view_decision_function, lambda X: OnlinePerceptron().error_curve_):
        with pytest.raises(NotFittedError):
            method(V)
    with pytest.raises(NotFittedError):
        ridge().certificate()


# -- certificates
def test_certificates_print_as_sentences():
    text = str(Certificate("converged", objective=4.0, gap=1e-6, residual=1e-8, bound=17))
    assert text == (
        "Objective 4, at most 1e-06 (2.5e-05%) above the optimum. Optimality conditions hold to 1e-08. Bound 17. "
        "The optimality gap is below the tolerance."
    )
    assert str(Certificate("exact", objective=0.0, gap=0.0)).startswith("Objective 0, at most 0 above")
    assert str(Certificate("exact", objective=2.0)).startswith("Objective 2.")
    assert all(text.endswith(".") for text in STATUSES.values())


@pytest.mark.parametrize("status", STATUSES)
def test_one_warning_when_a_solver_falls_short(status, recwarn):
    warn_unless_converged(Solution(None, gap=0.25, n_iter=7, status=status), "Ridge")
    if status in ("converged", "exact", "settled", "streamed", "delegated", "shared"):
        assert not recwarn.list
    else:
        assert len(recwarn.list) == 1
        assert issubclass(recwarn[0].category, ConvergenceWarning)
        assert str(recwarn[0].message).startswith("Ridge stopped after 7 iterations with a gap of 0.25.")


def test_single_samples_may_be_unlabeled_and_views_of_none_only_hold_nothing():
    half = [None if i % 3 == 0 else int(c) for i, c in enumerate(y3)]
    whole = OnlinePerceptron().partial_fit(V, half, classes=[0, 1, 2])
    single = OnlinePerceptron().partial_fit(V[:1], half[:1], classes=[0, 1, 2])
    for i in range(1, 40):
        single.learn_one({"a": pd.Series(A[i]), "b": B[i]}, half[i])
    assert single.n_mistakes_ == whole.n_mistakes_
    np.testing.assert_array_equal(single.decision_function(V), whole.decision_function(V))
    learned = OnlinePerceptron().partial_fit({"a": [None, None], "b": B[:2]}, [0, 1], classes=[0, 1, 2])
    learned.partial_fit({"a": [A[2].tolist(), None], "b": B[2:4]}, [0, 1])
    assert learned.view_names_in_ == ("a", "b")
    np.testing.assert_allclose(fitted().predict({"a": [None, None], "b": B[:2]}), fitted().predict({"b": B[:2]}))


def test_a_refused_chunk_leaves_no_trace():
    model = stream()
    before = repr(vars(model))
    for X, y in (({"a": A, "new": A}, [7] * 40), ({"a": A, "new": A}, y3[:3]), ({"a": B}, y3)):
        with pytest.raises(ValueError):
            model.partial_fit(X, y)
    assert repr(vars(model)) == before


def test_labels_keep_their_type_and_unlabeled_samples_are_not_scored():
    for labels, kind in (([0, 1] * 20, "i"), ([0.0, 1.0] * 20, "f"), (["a", "b"] * 20, "U")):
        assert read_labels(labels, 40).classes.dtype.kind == kind
    some = np.where(np.arange(40) < 30, y3, -1)
    model = MultipleKernelRidgeClassifier(p=np.inf, unlabeled=-1).fit(V, some)
    assert model.score(V, some) == np.mean(model.predict(V)[:30] == y3[:30])
    with pytest.raises(ValueError, match=r"^Input y contains infinity or a value too large for its type\.$"):
        read_labels(np.array([0.0, np.inf]), 2)


def test_targets_of_arrow_may_be_missing():
    Y, known = read_targets(pa.array([1.0, None, 2.5]), 3)
    assert Y[known, 0].tolist() == [1, 2.5]
    assert known.tolist() == [True, False, True]


def test_numbers_up_to_the_limit_are_taken_also_beside_missing_rows():
    limit = float(np.sqrt(np.finfo(np.float64).max)) * 1e-6
    for value in (limit, -limit):
        check_numbers(Views(a=[[value], [np.nan]], b=[[1.0], [2.0]]))
        with pytest.raises(
            ValueError, match=r"^View 'a' has values up to 1\.34e\+148; above 1\.34e\+148 .* Scale it\.$"
        ):
            check_numbers(Views(a=[[value * 1.0001], [1.0]]))
    with pytest.raises(ValueError, match=r"Scale it, or give float64 data\.$"):
        check_numbers(Views(a=np.array([[1e15], [1.0]], dtype=np.float32)))


def test_tags_of_regressors_tell_of_several_outputs():
    assert ridge().__sklearn_tags__().target_tags.multi_output


def test_sets_of_labels_of_arrow_are_those_of_lists():
    lists = [["a"], ["b", "a"], [], ["c"]] * 10
    model = OnlinePerceptron(random_state=0).fit(V, lists)
    again = OnlinePerceptron(random_state=0).fit(V, pa.array(lists))
    assert again.classes_.tolist() == model.classes_.tolist() == ["a", "b", "c"]
    assert np.array_equal(again.decision_function(V), model.decision_function(V))


def test_balanced_weights_of_a_class_without_weight_are_one():
    labels = read_labels([0, 1, 1, 2, 0, np.nan], 6)
    with np.errstate(all="raise"):
        found = class_weights("balanced", labels, np.array([1.0, 1, 2, 0, 1, 5]))
    assert found == pytest.approx([2.5 / 2, 2.5 / 3, 2.5 / 3, 1, 2.5 / 2, 1])
    assert class_weights("balanced", labels, np.zeros(6)).tolist() == [1] * 6


@pytest.mark.parametrize("shape", [(80,), (20,), (40, 1, 1), (40, 2, 1), (20, 2), ()])
def test_targets_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="X has 40, y has shape"):
        ridge().fit(V, np.ones(shape))


def test_an_online_estimator_takes_a_square_array_as_a_gram_matrix():
    K = RBF(0.5)(A)
    data = KernelPerceptron(RBF(0.5), shuffle=False).fit(A, y3)
    given = KernelPerceptron("precomputed", shuffle=False).fit(K, y3)
    np.testing.assert_allclose(given.decision_function(K), data.decision_function(A))
    with pytest.raises(ValueError, match="a stream needs kernels between samples of all chunks"):
        KernelPerceptron("precomputed").partial_fit(K, y3)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_single_missing_values_become_the_means_of_the_known_ones(form):
    holed, known = A.copy(), A.copy()
    holed[::4, 1], known[::4, 1] = np.nan, np.delete(A[:, 1], np.arange(0, 40, 4)).mean()
    model, expected = (ConsensusRegressor(Linear()).fit(Views(a=form(own), b=B), target) for own in (holed, known))
    assert model.n_filled_ == {"a": 10, "b": 0}
    np.testing.assert_allclose(model.predict({"a": form(holed), "b": B}), expected.predict({"a": known, "b": B}))


def test_the_number_of_columns_is_claimed_where_an_array_of_them_is_read():
    model = CoRegularizedRidge().fit({"a": A}, A[:, 0])
    assert model.predict(np.zeros((1, model.n_features_in_))).shape == (1,)
    model.fit({"a": A, "b": B}, A[:, 0])
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="does not know 'view0'"):
        model.predict(np.hstack([A, B]))
    stream = OnlinePerceptron().partial_fit({"a": A}, A[:, 0] > 0)
    assert stream.n_features_in_ == A.shape[1]
    assert not hasattr(stream.partial_fit({"a": A, "b": B}, A[:, 0] > 0), "n_features_in_")  # a view that comes late
