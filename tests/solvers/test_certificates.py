"""What certificates say is true: of indefinite kernels, and of coefficients as they are stored."""

import warnings
from functools import partial
from math import comb, log

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import is_classifier

import cases
import consilience as cs
import reference
from consilience import Views, certificates
from consilience.kernels import RBF, FromCallable, Linear, Precomputed, nearest_psd, normalize

n = 30
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 3))
TARGETS = X[:, 0] + 0.1 * rng.normal(size=n)
LABELS = np.digitize(TARGETS, [-0.3, 0.5])
Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
INDEFINITE = (Q * np.r_[-5.0, np.linspace(0.1, 3, n - 1)]) @ Q.T
INDEFINITE = (INDEFINITE + INDEFINITE.T) / 2
BATCH = cases.with_kernels(online=False)
BOUNDED = (cs.KernelPerceptron, cs.PassiveAggressive, cs.OrthogonalPerceptron, cs.VectorPerceptron)
ONLINE = {cls.__name__: cls for cls in BOUNDED}
REFUSED = r"View 'bad': .* is not positive semi-definite"


def negative_distance(A, B):
    return -cdist(A, B)


def one_pair(x, z):
    return -float(np.linalg.norm(x - z))


# kernels of the view "bad": what is given for it, and the kernel
OUTSIDE = {
    "precomputed": (INDEFINITE, Precomputed()),
    "callable": (X, FromCallable(negative_distance)),
    "callable on pairs": (X, FromCallable(one_pair, pairs=True)),
    "scaled": (X, 2.0 * FromCallable(negative_distance)),
    "sum": (X, FromCallable(negative_distance) + 0.1 * Linear()),
    "columns": (X, FromCallable(negative_distance).on([0, 1])),
    "normalized": (X, normalize(FromCallable(lambda A, B: 1 - 2 * cdist(A, B)))),
}


def data(name):
    given, kernel = OUTSIDE[name]
    V = Views({"good": X, "bad": given}, precomputed="bad" if name == "precomputed" else None)
    return V, {"good": RBF(0.5), "bad": kernel}


def targets(model):
    return LABELS if is_classifier(model) else TARGETS


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("kind", BATCH)
def test_indefinite_kernels_are_refused_with_the_view_named(kind, name):
    V, kernels = data(name)
    model = BATCH[kind](kernel=kernels)
    given = model.get_params()
    sizes = () if "n_components" not in given else (12, 1.0) if "random_state" in given else (12,)
    seed = {"random_state": 0} if "random_state" in given else {}
    for more in ({}, *({"n_components": size, **seed} for size in sizes)):
        with pytest.raises(ValueError, match=REFUSED):
            model.set_params(**more).fit(V, targets(model))
        assert not hasattr(model, "view_names_in_")
    if name == "precomputed":
        V = Views({"good": X, "bad": nearest_psd(INDEFINITE)}, precomputed="bad")
        assert BATCH[kind](kernel=kernels).fit(V, targets(model)).certificate() is not None


@pytest.mark.parametrize(
    "combine", ["product", cs.kernels.Polynomial(2), [(("good", "bad"), 1.0), (("bad",), 0.5)]], ids=str
)
@pytest.mark.parametrize("kind", ["MaxMarginClassifier", "MaxMarginRegressor"])
def test_indefinite_kernels_are_refused_in_products_and_of_outputs(kind, combine):
    for name in ("precomputed", "callable"):
        V, kernels = data(name)
        model = BATCH[kind](kernel=kernels, combine=combine)
        with pytest.raises(ValueError, match=REFUSED):
            model.fit(V, targets(model))
    for kernel in (FromCallable(negative_distance), FromCallable(one_pair, pairs=True)):
        with pytest.raises(ValueError, match=r"`output_kernel`: .* is not positive semi-definite between the outputs"):
            cs.MaxMarginRegressor(RBF(0.5), output_kernel=kernel).fit(X, X[:, :2])


@pytest.mark.parametrize("name", OUTSIDE)
def test_indefinite_kernels_are_refused_by_features_and_leave_online_estimators_without_a_bound(name):
    V, kernels = data(name)
    for size in (12, 1.0):
        with pytest.raises(ValueError, match=REFUSED + " between the landmarks"):
            cs.Nystroem(kernel=kernels, n_components=size, random_state=0).fit(V)
    y = (TARGETS > 0).astype(int)
    for cls in ONLINE.values():
        assert cls(kernel=kernels, shuffle=False, max_iter=1).fit(V, y).certificate(V, y).bound is None, cls


LOW = np.random.default_rng(2).normal(size=(n, 2))
ROUNDED = {
    "of two columns": (LOW @ LOW.T).astype(np.float32),
    "of equal samples": RBF(0.3)(np.vstack([LOW[:15], LOW[:15]])).astype(np.float32),
    "of a callable": None,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("other", [True, False], ids=["with another view", "alone"])
@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("kind", [*BATCH, *ONLINE])
def test_kernels_that_are_indefinite_by_rounding_only_are_taken(kind, name, other):
    K, kernel = ROUNDED[name], Precomputed()
    if K is None:
        K, kernel = LOW.astype(np.float32), FromCallable(lambda A, B: A @ B.T)
    V = Views({"bad": K, **({"good": X} if other else {})}, precomputed="bad" if kernel.reads_gram else None)
    model = {**BATCH, **ONLINE}[kind](kernel={"bad": kernel, "good": RBF(0.5)} if other else kernel)
    y = targets(model)
    assert len(model.fit(V, y).predict(V)) == n
    assert (model.certificate(V, y) if kind in ONLINE else model.certificate()).status


# -- the coefficients as they are stored, in extended precision
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-6, 1e-9, 1e-12])
def test_stored_coefficients_are_as_good_as_certified(alpha, dtype, seed):
    own = np.random.default_rng(seed)
    A = own.normal(size=(40, 3)).astype(dtype)
    y = np.sin(A[:, 0]).astype(np.float64) + 0.1 * own.normal(size=40)
    model = cs.CoRegularizedRidge(RBF(0.3), alpha=alpha).fit(A, y)
    proof, a = model.certificate(), model.dual_coef_[0, :, 0]
    K64 = RBF(0.3)(A.astype(np.float64))
    K = K64.astype(np.longdouble)
    best = reference.extended_solve(K + 40 * np.longdouble(alpha) * np.eye(40), y)
    difference = a.astype(np.longdouble) - best
    above = np.mean((K @ difference) ** 2) + np.longdouble(alpha) * difference @ K @ difference
    value = np.mean((y - K @ a) ** 2) + np.longdouble(alpha) * a @ K @ a
    single = model.X_fit_["view0"].dtype == np.float32
    assert above <= proof.gap + 1e-15 * value
    assert abs(value - proof.objective) <= proof.gap + (1e-6 if single else 1e-12) * value
    assert np.abs(model.predict(A) - K64 @ a).max() <= (1e-6 if single else 1e-9)
    assert not single or alpha > 1e-6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("alpha", [1e-3, 1e-9, 1e-14])
def test_the_gap_of_features_is_not_below_the_true_one(alpha, shift, seed):
    own = np.random.default_rng(seed)
    A = own.normal(size=(60, 2))
    y = shift + np.sin(A[:, 0]) + 0.1 * own.normal(size=60)
    model = cs.CoRegularizedRidge(RBF(0.3), alpha=alpha, n_components=25, random_state=0).fit(A, y)
    proof, w = model.certificate(), next(iter(model.coef_.values())).ravel()
    F = model._features.transform(Views(view0=A))["view0"].astype(np.longdouble)
    best = reference.extended_solve(F.T @ F + 60 * np.longdouble(alpha) * np.eye(F.shape[1]), F.T @ y)
    difference = w.astype(np.longdouble) - best
    above = np.mean((F @ difference) ** 2) + np.longdouble(alpha) * difference @ difference
    value = np.mean((y - F @ w) ** 2) + np.longdouble(alpha) * w @ w
    assert above <= proof.gap
    assert abs(value - proof.objective) <= proof.gap


# -- bounds: the formulas of the papers, sample by sample, at values where every term matters
LOSSES, SIZES = [0.0, 0.5, 1.25, 0.0, 2.0], [1.0, 0.3, 2.0, 0.0, 0.7]


@pytest.mark.parametrize("p", [2.0, 3.5])
@pytest.mark.parametrize("C", [0.2, 3.0])
def test_bounds_on_mistakes_are_the_formulas_of_the_paper(C, p):
    norm, pairs = 1.7, list(zip(LOSSES, SIZES, strict=True))
    R2 = max((p - 1) * size**2 for _, size in pairs)
    b2 = sum(loss**2 / ((p - 1) * size**2) for loss, size in pairs if loss > 0)
    expected = {
        "PA": R2 * (b2**0.5 + (b2 + norm**2) ** 0.5) ** 2,
        "PA-I": max(R2, 1 / C) * (norm**2 + 2 * C * sum(LOSSES)),
        "PA-II": (R2 + 1 / (2 * C)) * (norm**2 + 2 * C * sum(loss**2 for loss in LOSSES)),
    }
    for variant, bound in expected.items():
        found = certificates.passive_aggressive_bound(LOSSES, SIZES, norm, variant=variant, C=C, p=p)
        assert found == pytest.approx(bound, rel=1e-12)
    assert certificates.loss_bound(LOSSES, SIZES, norm, squared=True, C=C, p=p) == pytest.approx(expected["PA-II"])
    assert certificates.loss_bound(LOSSES, SIZES, norm, squared=True, C=np.inf, p=p) == pytest.approx(expected["PA"])


@pytest.mark.parametrize("p", [2.0, 3.5])
@pytest.mark.parametrize(("C", "norm"), [(0.2, 1.7), (3.0, 1.7), (3.0, 0.2), (40.0, 1.7), (1e-3, 30.0)])
def test_the_bound_on_losses_is_the_smaller_one_at_the_best_step(C, norm, p):
    total = sum((p - 1) * size**2 for size in SIZES)
    regret = sum(LOSSES) + norm**2 / (2 * C) + C * total / 2
    B = norm**2 + 2 * C * sum(LOSSES)
    steps = np.linspace(0, C / 2, 20_001)[1:]
    best = min(regret, float(np.min(B / (2 * steps) + steps * total / 2)))
    assert certificates.loss_bound(LOSSES, SIZES, norm, C=C, p=p) == pytest.approx(best, rel=1e-6)
    s = 0.8
    expected = sum(LOSSES) + norm**2 / (2 * C) + C * s**2 * total / 2
    assert certificates.loss_bound(LOSSES, SIZES, norm, C=C, slope=s, p=p) == pytest.approx(expected, rel=1e-12)
    b2 = sum(loss**2 / ((p - 1) * size**2) for loss, size in zip(LOSSES, SIZES, strict=True) if loss > 0)
    expected = total**0.5 * (b2**0.5 + (b2 + norm**2) ** 0.5)
    assert certificates.loss_bound(LOSSES, SIZES, norm, C=np.inf, p=p) == pytest.approx(expected, rel=1e-12)


def test_bounds_where_a_loss_cannot_be_removed_and_where_there_is_nothing():
    """A sample of length 0 with a loss, among others; no samples of any length; no limit and another slope."""
    with np.errstate(all="raise"):
        for bound in (certificates.loss_bound, partial(certificates.passive_aggressive_bound, variant="PA")):
            assert bound([1.0, 0.5], [0.0, 1.0], 1.0, C=np.inf) == np.inf
            assert bound([0.0, 0.5], [0.0, 1.0], 1.0, C=np.inf) < np.inf
    assert certificates.loss_bound([0.5], [1.0], 1.0, C=np.inf, slope=0.8) == np.inf
    # the sum of c_t is 0: B/(2a) at a = C/2 is 6, the regret is 3
    assert certificates.loss_bound([2.0, 0.0], [0.0, 0.0], 1.0, C=0.5) == 2 + 1
    assert certificates.loss_bound([0.0], [1.0], 0.0, C=2.0) == 0.0 + 2 / 2  # u = 0: a would be 0


def test_bounds_of_sparse_classifiers_count_subsets():
    for d, m, delta in ((0, 1, 0.05), (3, 40, 0.05), (3.9, 40, 0.05), (10, 500, 0.01), (340, 1000, 0.2)):
        expected = (log(comb(m, int(d))) + np.log(m) + np.log(1 / delta)) / (m - int(d))
        assert certificates.sparsity_bound(d, m, delta) == pytest.approx(min(1.0, expected), rel=1e-9)
    assert certificates.sparsity_bound(0, 1000) < certificates.sparsity_bound(1, 1000) < 0.03
    assert certificates.sparsity_bound(19, 40) == certificates.sparsity_bound(20, 40) == 1.0
    assert certificates.sparsity_bound(1000, 1000) == certificates.sparsity_bound(2000, 1000) == 1.0  # no division by 0
    assert certificates.sparsity_bound(0, 0) == 1.0  # nothing is known from no samples
    assert certificates.risk_bound(0.1, 50, 0.2) == pytest.approx(0.1 + np.sqrt(2 * np.log(5) / 50))
    assert certificates.risk_bound(0.1, 50) == pytest.approx(0.1 + np.sqrt(2 * np.log(20) / 50))


def test_bounds_of_perceptrons_and_of_metrics_are_their_formulas():
    A = 1.7**2 * (2.5 * 0.6**2 + 2 * 0.3 / 0.4)
    expected = 0.9 + A + np.sqrt(A * 0.9) + 1.7 * 0.8 / 0.4
    found = certificates.perceptron_bound(0.9, 0.6, 1.7, p=3.5, margin=0.3, eta0=0.4, start=0.8)
    assert found == pytest.approx(expected, rel=1e-12)
    assert certificates.perceptron_bound(0.9, 0.6, 1.7) == pytest.approx(0.9 + 1.0404 + np.sqrt(1.0404 * 0.9))
    assert certificates.perceptron_bound(0.9, 0.6, 1.7, start=0.8) == pytest.approx(0.9 + 1.0404 + 0.96764 + 1.36, 1e-5)
    assert certificates.perceptron_bound(0.0, 0.6, 1.7, margin=0.3) == pytest.approx(1.0404 + 1.7**2 * 0.6)
    assert certificates.novikoff_bound(0.6, 0.25) == pytest.approx(5.76)
    updates, margin = certificates.vector_perceptron_bounds(0.7, 0.4, margin=0.3, squared_size=1.9)
    assert updates == pytest.approx((1.9 + 2 * 0.3 / 0.4) / 0.7**2)
    assert margin == pytest.approx(0.3 * 0.7 / (2 * 0.3 + 0.4 * 1.9))
    assert certificates.rademacher_bound(4.4, 0.3, 0.7, 6) == pytest.approx(0.3 * np.sqrt(4.4 * 0.7) / 6)
    assert certificates.passive_aggressive_bound([0.25], [0.5], 2.0) == pytest.approx(1.0 * (4 + 2 * 0.25))
    assert certificates.loss_bound([0.25], [0.5], 2.0) == pytest.approx(0.25 + 4 / 2 + 0.25 / 2)


STREAMED = "Learned as the samples arrived; no optimum is claimed."
CONVERGED = "The optimality gap is below the tolerance."
SENTENCES = [
    (certificates.Certificate("converged"), CONVERGED),
    (certificates.Certificate("converged", gap=0.5), CONVERGED),
    (certificates.Certificate("converged", objective=2.5), f"Objective 2.5. {CONVERGED}"),
    (
        certificates.Certificate("converged", objective=-4.0, gap=0.5),
        f"Objective -4, at most 0.5 (12%) above the optimum. {CONVERGED}",
    ),
    (
        certificates.Certificate("converged", objective=0.0, gap=0.5, residual=0.25, bound=1.5, note="A note."),
        "Objective 0, at most 0.5 above the optimum. Optimality conditions hold to 0.25. Bound 1.5. "
        f"{CONVERGED} A note.",
    ),
    (certificates.MarginCertificate("converged", objective=2.5, n_support=3), f"Objective 2.5. {CONVERGED}"),
    (certificates.PerceptronCertificate("streamed", n_updates=7), f"7 updates. {STREAMED}"),
    (
        certificates.PerceptronCertificate(
            "streamed", n_updates=7, bound=30.0, widest=0.3, margin=0.1, margin_bound=0.05, risk=0.2
        ),
        "7 updates, at most 30 by the margin 0.3 of the best operator. Margin 0.1, at least 0.05. Error rate at most "
        f"0.2 with probability 95%, if the samples are independent. {STREAMED}",
    ),
    (certificates.MistakeCertificate("streamed"), f"0 mistakes in 0 samples. {STREAMED}"),
    (
        certificates.MistakeCertificate("streamed", n_mistakes=7, n_samples=9, bound=9.0),
        "7 mistakes in 9 samples, at most 9, the number of samples; a better bound needs certificate(X, y). "
        f"{STREAMED}",
    ),
    (certificates.LossCertificate("streamed"), f"Summed loss 0 over 0 samples. {STREAMED}"),
]


@pytest.mark.parametrize(("proof", "text"), SENTENCES)
def test_certificates_print_what_they_know_and_nothing_else(proof, text):
    assert str(proof) == text


def test_a_lower_bound_needs_an_objective_and_a_gap():
    assert certificates.Certificate("converged", objective=2.0, gap=0.5).dual == 1.5
    assert certificates.Certificate("converged", objective=2.0).dual is None
    assert certificates.Certificate("converged", gap=0.5).dual is None
    assert certificates.Solution(None, 0.5, 3, "max_iter", objective=2.0).dual == 1.5
    for lacking in (
        certificates.Solution(None, None, 3, "max_iter", objective=2.0),
        certificates.Solution(None, 0.5, 3, "max_iter"),
    ):
        with pytest.raises(AssertionError):
            lacking.dual
    with pytest.raises(ValueError, match=r"A solution's status is one of converged, exact, .*; got 'good'"):
        certificates.Solution(None, 0.5, 3, "good")


def test_a_solver_that_fell_short_warns_once_at_the_line_of_the_user():
    converged = {"converged", "exact", "settled", "streamed", "delegated", "shared"}
    for status, sentence in certificates.STATUSES.items():
        for gap, told in ((None, ""), (0.25, " with a gap of 0.25")):
            solution = certificates.Solution(None, gap, 3, status)
            assert solution.converged == (status in converged)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                certificates.warn_unless_converged(solution, "Ridge")
            texts = [] if status in converged else [f"Ridge stopped after 3 iterations{told}. {sentence}"]
            assert [str(warning.message) for warning in caught] == texts
            assert {warning.filename for warning in caught} <= {__file__}
