"""Digests of data and parameters: equal values have one digest, others have another."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer

import consilience as cs
from consilience.io._digests import digest_of
from consilience.kernels import RBF, Linear

DENSE = np.arange(6.0).reshape(3, 2)


def text_views(last):
    found = np.empty(3, dtype=object)
    found[:] = ["a", None, last]
    return cs.Views(t=found, d=DENSE)


def function(power):
    return lambda model, X, y: model.score(X, y) ** power


def cycle(last):
    found = [1]
    found += [found, last]
    return found


# what makes a value anew, and the same with a small difference
PAIRS = {
    "a type": (lambda: 1, lambda: 1.0),
    "a boolean": (lambda: True, lambda: 1),
    "a missing value": (lambda: None, lambda: "None"),
    "the last bit": (lambda: 0.1 + 0.2, lambda: 0.3),
    "a sign": (lambda: 0.0, lambda: -0.0),
    "a precision": (lambda: np.float32(1), lambda: np.float64(1)),
    "a shape": (lambda: np.zeros((2, 3)), lambda: np.zeros((3, 2))),
    "a part": (lambda: ["ab", "c"], lambda: ["a", "bc"]),
    "a depth": (lambda: [[1], 2], lambda: [[1, 2]]),
    "an order": (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}),
    "a set": (lambda: {"a", "b", "c"}, lambda: {"a", "b", "d"}),
    "an object array": (lambda: np.array(["a", None]), lambda: np.array(["a", "None"], dtype=object)),
    "times": (lambda: np.array(["2020-01-01"], "M8[D]"), lambda: np.array(["2020-01-02"], "M8[D]")),
    "a sparse matrix": (lambda: sp.csr_array(DENSE), lambda: sp.csr_array(2 * DENSE)),
    "views": (lambda: cs.Views(a=DENSE), lambda: cs.Views(b=DENSE)),
    "texts": (lambda: text_views("b"), lambda: text_views("c")),
    "names of samples": (lambda: cs.Views(a=DENSE, sample_names=list("xyz")), lambda: cs.Views(a=DENSE)),
    "a Gram matrix": (lambda: cs.Views(a=np.eye(3), precomputed=True), lambda: cs.Views(a=np.eye(3))),
    "an estimator": (lambda: cs.EarlyFusion(Ridge(2)), lambda: cs.EarlyFusion(Ridge())),
    "a kernel": (lambda: RBF(0.1) * Linear(), lambda: RBF(0.2) * Linear()),
    "a scorer": (lambda: make_scorer(f1_score), lambda: make_scorer(f1_score, pos_label=0)),
    "a closure": (lambda: function(1), lambda: function(2)),
    "an inner function": (lambda: lambda x: x + 1, lambda: lambda x: x + 2),
    "a partial function": (lambda: functools.partial(max, 1), lambda: functools.partial(max, 2)),
    "a random state": (lambda: np.random.default_rng(0), lambda: np.random.default_rng(1)),
    "a cycle": (lambda: cycle(1), lambda: cycle(2)),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_equal_values_have_one_digest_and_others_another(case):
    make, other = PAIRS[case]
    assert digest_of(make()) == digest_of(make())
    assert digest_of(make()) != digest_of(other())


def test_what_makes_no_difference():
    """Neither the order in memory, nor what an object has found out about itself, nor whether parts are shared."""
    assert digest_of(np.asfortranarray(DENSE)) == digest_of(DENSE)
    assert digest_of(DENSE[::1, ::-1][:, ::-1]) == digest_of(DENSE)
    looked_at = sp.csr_array(DENSE)
    assert looked_at.has_canonical_format
    assert digest_of(looked_at) == digest_of(sp.csr_array(DENSE))
    shared = [1.5]
    assert digest_of([shared, shared]) == digest_of([[1.5], [1.5]])


def test_what_cannot_be_pickled_has_no_digest():
    with pytest.raises(TypeError, match="generator"):
        digest_of([1, (x for x in (1, 2))])


class Own:
    """Another class of the same name has another digest if its code differs."""

    constant = 1

    @property
    def value(self):
        """Return a number."""
        return 1

    @staticmethod
    def plain():
        return 2

    @functools.cached_property
    def kept(self):
        return 3


def test_the_code_of_a_class_counts(monkeypatch):
    before = digest_of(Own())
    for name, value in [
        ("constant", 2),
        ("value", property(lambda self: 2)),
        ("plain", staticmethod(lambda: 3)),
        ("kept", functools.cached_property(lambda self: 4)),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(Own, name, value)
            assert digest_of(Own()) != before
    assert digest_of(Own()) == before
