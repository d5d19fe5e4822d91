"""Every estimator keeps scikit-learn's contracts on a plain array and ours on views."""

import numpy as np
import pytest
import sklearn.utils.estimator_checks
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import cases
from consilience import check_multiview_estimator
from consilience.evaluation.checks import multiview_checks
from consilience.online._frame import OnlineEstimator

# The first case of a class runs all checks. Its other cases have other numbers and other solvers, but the same
# signature, tags and validation of input, so they run the checks that fit and compare numbers, in one form each: some
# are there again on arrays that cannot be written to. Every case has sparse views in `check_sparse_is_dense`.
NUMERIC = {
    "check_class_weight_classifiers", "check_classifiers_one_label", "check_classifiers_train", "check_dict_unchanged",
    "check_estimators_dtypes", "check_estimators_overwrite_params",
    "check_estimators_pickle", "check_f_contiguous_array_estimator", "check_fit2d_1feature", "check_fit2d_1sample",
    "check_fit_idempotent", "check_methods_sample_order_invariance", "check_methods_subset_invariance",
    "check_non_transformer_estimators_n_iter", "check_readonly_memmap_input", "check_regressor_multioutput",
    "check_regressors_int", "check_regressors_train", "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}  # fmt: skip


def kind(estimator):
    """Return the class of an estimator; the online ones share one frame, so they are two kinds: labels and numbers."""
    online = isinstance(estimator, OnlineEstimator)
    return (OnlineEstimator, is_classifier(estimator)) if online else type(estimator)


def further(name):
    """Return a mark for a case that is not the first one of its kind: short runs leave it out."""
    first = next(other for other, model in cases.LEARNERS.items() if kind(model) == kind(cases.LEARNERS[name]))
    return [pytest.mark.further] if first != name else []


def generated():
    seen = set()
    for name, estimator in cases.LEARNERS.items():
        for own, check in estimator_checks_generator(estimator):
            label = getattr(check, "func", check).__name__
            numeric = label in NUMERIC and not getattr(check, "keywords", {}).get("readonly_memmap")
            if label not in cases.EXEMPT.get(name, {}) and (type(estimator) not in seen or numeric):
                yield pytest.param(own, check, id=f"{name}-{label}", marks=further(name))
        seen.add(type(estimator))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(generated()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def exempted():
    for name, reasons in cases.EXEMPT.items():
        for own, check in estimator_checks_generator(cases.LEARNERS[name]):
            label = getattr(check, "func", check).__name__
            if label in reasons:
                yield pytest.param(own, check, id=f"{name}-{label}", marks=further(name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(exempted()))
def test_an_exemption_is_still_needed(estimator, check):
    with pytest.raises((AssertionError, ValueError, TypeError)):
        check(estimator)


def test_every_exemption_names_an_estimator_and_a_check():
    # checks that the installed version of scikit-learn has; older ones have fewer
    known = {name for name in dir(sklearn.utils.estimator_checks) if name.startswith("check_")}
    for name, reasons in cases.EXEMPT.items():
        made = {getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(cases.LEARNERS[name])}
        assert set(reasons) & known <= made, name
        assert all(reasons.values()), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{name}-{check.__name__}", marks=further(name))
        for name, estimator in cases.LEARNERS.items()
        for check in multiview_checks(estimator)
    ],
)
def test_multiview_checks(estimator, check):
    check(estimator)


def test_every_estimator_is_in_the_table_and_every_check_is_known():
    assert {type(estimator) for estimator in cases.LEARNERS.values()} >= set(cases.all_learners())
    labels = {parameters.id.rpartition("-")[2] for parameters in generated()}
    assert labels >= NUMERIC, "a check of this name does not exist"


def test_an_estimator_that_breaks_contracts_is_named_with_the_sentences():
    class Careless(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X["a"] if isinstance(X, dict) else np.asarray(X), y)

    with pytest.raises(AssertionError) as caught:
        check_multiview_estimator(Careless())
    text = str(caught.value)
    assert text.startswith("Careless breaks ")
    sentences = {check.__name__: check.__doc__ for check in multiview_checks(Careless())}
    assert f"- {sentences['check_one_view_is_plain']} " in text
    assert f"- {sentences['check_always_missing']} " in text
