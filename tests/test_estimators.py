"""Every learner keeps scikit-learn's contracts on a plain array and ours on views."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import cases
from consilience import check_multiview_estimator
from consilience.evaluation.checks import multiview_checks

EXEMPT = {
    # a sample that stands twice is left out once only, so held-out scores are not those of a weight of two
    (cv, check)
    for cv in ("coregularized ridge cv", "coregularized classifier cv", "metric ridge cv", "metric classifier cv")
    for check in ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
} | {
    # without a bias no linear machine answers one class everywhere, whatever its weight
    ("max margin, linear", "check_class_weight_classifiers"),
}


def generated():
    for name, learner in cases.LEARNERS.items():
        for estimator, check in estimator_checks_generator(learner):
            label = getattr(check, "func", check).__name__
            if (name, label) in EXEMPT:
                continue
            yield pytest.param(estimator, check, id=f"{name}-{label}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(generated()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("learner", "check"),
    [
        pytest.param(learner, check, id=f"{name}-{check.__name__}")
        for name, learner in cases.LEARNERS.items()
        for check in multiview_checks(learner)
        # the smallest learners live in the tests, which model files do not trust
        if not (name.startswith("frame") and check.__name__ == "check_save_and_load")
    ],
)
def test_multiview_checks(learner, check):
    check(learner)


def test_every_learner_is_in_the_table():
    assert {type(learner) for learner in cases.LEARNERS.values()} >= set(cases.all_learners())


def test_a_learner_that_breaks_contracts_is_named_with_the_sentences():
    class Careless(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X["a"] if isinstance(X, dict) else np.asarray(X), y)

    with pytest.raises(AssertionError) as caught:
        check_multiview_estimator(Careless())
    text = str(caught.value)
    assert text.startswith("Careless breaks ")
    assert "- One view equals the plain array. " in text
    assert "- An always-missing view equals its removal. " in text
