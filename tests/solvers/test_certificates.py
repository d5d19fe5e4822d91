"""What certificates say is true: of indefinite kernels, and of coefficients as they are stored."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import is_classifier

import cases
import consilience as cs
import reference
from consilience import Views
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
