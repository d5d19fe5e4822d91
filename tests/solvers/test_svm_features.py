"""Support vector machines over features: the program of `class_qp` without its kernel, however rows are read."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import consilience as cs
import reference
from consilience.solvers import svm_features as module
from consilience.solvers.box_qp import class_qp
from consilience.solvers.svm_features import keep_features, scaled_features, svm_features


def program(kind, n=120, q=12, P=4, scale=1.0):
    """Return T, codes, D, the upper bounds and the signs of a program with weights of samples and a zero row."""
    rng = np.random.default_rng(0)
    y = rng.integers(P, size=n)
    T = rng.normal(size=(n, q))
    T[np.arange(n), y] += 1.5
    T[7] = 0.0
    T *= scale
    upper = np.repeat(rng.uniform(0.5, 2, size=(n, 1)) / n, P, axis=1)
    own = y[:, None] == np.arange(P)
    if kind.startswith("ovr"):
        weights = np.diag([1.0, 2.0, 0.0, 0.5]) if kind == "ovr, scaled" else np.eye(P)
        return T[None], [weights], np.ones((n, P)), upper, np.where(own, 1.0, -1.0)
    vectors = rng.normal(size=(P, 3)) if kind == "vectors" else cs.simplex_vectors(P)
    margins, inside = -(vectors @ vectors.T)[y], np.where(own, 0.0, upper)
    if kind == "several kernels":
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        both = np.stack([T, T * rng.uniform(0.2, 1, q)])
        return both, [vectors @ turn[:, :2], 1.3 * vectors @ turn[:, 2:]], margins, inside, -np.ones((n, P))
    return T[None], [vectors], margins, inside, -np.ones((n, P))


KINDS = ["ovr", "ovr, scaled", "simplex", "vectors", "several kernels"]


def whole(T):
    return lambda: iter([(slice(0, T.shape[1]), T)])


def in_blocks(T, size=31):
    starts = range(0, T.shape[1], size)
    return lambda: iter([(slice(s, min(s + size, T.shape[1])), T[:, s : s + size].copy()) for s in starts])


def over_kernel(T, codes, D, upper, signs, tol):
    """Return the solution of `class_qp` over the explicit kernel between all pairs of a sample and a class."""
    Q = sum(np.kron(2 * own @ own.T, S @ S.T) for own, S in zip(T, codes, strict=True))
    flat = [part.reshape(-1, 1) for part in (D, upper, signs)]
    return class_qp(Q, np.eye(1), *flat, tol=tol, max_iter=300)


def outputs(T, codes, signs, alpha):
    A = signs * alpha.reshape(signs.shape)
    return sum(own @ (own.T @ (A @ S)) @ S.T for own, S in zip(T, codes, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_it_is_the_solution_over_the_kernel(kind, scale):
    T, codes, D, upper, signs = program(kind, scale=scale)
    expected = over_kernel(T, codes, D, upper, signs, 1e-9)
    assert expected.converged
    right = outputs(T, codes, signs, expected.x)
    for read in (whole, in_blocks):
        found = svm_features(read(T), codes, D, upper, signs, tol=1e-8, max_iter=200)
        assert found.converged
        assert found.gap <= 1e-8 * found.objective
        assert found.objective == pytest.approx(expected.objective, rel=1e-7)
        assert (found.x >= 0).all()
        assert (found.x <= upper).all()
        np.testing.assert_allclose(outputs(T, codes, signs, found.x), right, atol=1e-4 * np.abs(right).max())


@pytest.mark.parametrize("kind", ["ovr", "ovr, scaled", "simplex", "vectors"])
def test_gap_objective_and_violation_are_those_of_the_definition(kind):
    T, codes, D, upper, signs = program(kind)
    found = svm_features(whole(T), codes, D, upper, signs, tol=1e-3, max_iter=1)
    slopes = signs * outputs(T, codes, signs, found.x) - D
    loss, square = np.sum(upper * np.maximum(0, -slopes)), np.sum(signs * found.x * outputs(T, codes, signs, found.x))
    primal, dual = loss + square / 2, np.sum(D * found.x) - square / 2
    assert found.objective == pytest.approx(primal, rel=1e-9)
    assert found.gap == pytest.approx(primal - dual, rel=1e-6, abs=1e-12)
    worst = np.maximum(np.where(found.x > 0, slopes, 0), np.where(found.x < upper, -slopes, 0)).max()
    assert found.residual == pytest.approx(max(worst, 0), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", ["ovr", "simplex", "vectors"])
def test_it_is_the_naive_twin(kind):
    T, codes, D, upper, signs = program(kind, n=25, q=5, scale=0.7)
    found = svm_features(whole(T), codes, D, upper, signs, tol=1e-10, max_iter=300)
    twin = reference.hinge_coordinates(T[0], codes[0], D, upper, signs, 400)
    np.testing.assert_allclose(outputs(T, codes, signs, found.x), outputs(T, codes, signs, twin), atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_classes_are_liblinears(C):
    T, _, _, _, signs = program("ovr", n=200)
    X, sign = T[0], signs[:, :1]
    found = svm_features(whole(T), [np.eye(1)], np.ones((200, 1)), np.full((200, 1), C), sign, tol=1e-9, max_iter=100)
    peer = LinearSVC(C=C, loss="hinge", dual=True, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(X, sign[:, 0])
    w = X.T @ (sign * found.x)[:, 0]
    np.testing.assert_allclose(w, peer.coef_[0], atol=1e-4 * np.abs(w).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_at_the_solution_is_measured_and_kept(kind):
    T, codes, D, upper, signs = program(kind)
    first = svm_features(whole(T), codes, D, upper, signs, tol=1e-8, max_iter=200)
    again = svm_features(whole(T), codes, D, upper, signs, tol=1e-6, max_iter=200, x0=first.x)
    assert again.n_iter <= 1
    assert again.objective == pytest.approx(first.objective, rel=1e-6)


def test_interior_points_solve_what_steps_do_not(monkeypatch):
    """Bounds 10⁷ times the solution's scale: coordinate steps need thousands of turns."""
    T, codes, D, upper, signs = program("ovr", n=400, q=30, scale=1e4)
    solved = []
    interior = module._interior_point
    monkeypatch.setattr(module, "_interior_point", lambda *given: (solved.append(1), interior(*given))[1])
    found = svm_features(in_blocks(T, 150), codes, D, upper, signs, tol=1e-7, max_iter=100)
    assert found.converged
    assert solved
    monkeypatch.setattr(module, "_rounds_left", lambda *given: 0.0)
    assert not svm_features(whole(T), codes, D, upper, signs, tol=1e-7, max_iter=100).converged


def test_the_rounds_that_are_left_follow_from_the_last_ones():
    halved = [10.0, 9.9, *(8 * 0.5 ** np.arange(5))]  # 0.5 at the end
    assert module._rounds_left(halved, 0.5 / 2**7) == pytest.approx(7)
    assert module._rounds_left(halved, 0.5) == 0
    assert module._rounds_left(halved[2:6], 1e-9) == 0  # too few to tell
    assert module._rounds_left([1.0] * 5, 0.5) == np.inf
    assert module._rounds_left([1.0, 2.0, 3.0, 4.0, 5.0], 0.5) == np.inf


def test_other_variables_are_taken_only_where_their_gap_is_smaller():
    T, (S,), D, upper, signs = program("ovr")
    start = upper * np.random.default_rng(1).uniform(size=D.shape)
    end = svm_features(whole(T), [S], D, upper, signs, tol=1e-4, max_iter=100).x

    def gap(x):
        w = T[0].T @ (signs[:, 0] * x)
        slopes = signs[:, 0] * (T[0] @ w) - D[:, 0]
        return np.sum(upper[:, 0] * np.maximum(0, -slopes)) + x @ slopes

    for share in (-0.3, -1e-2, -1e-4, 1e-4, 1e-2, 0.3, 1.0):
        parts = module._Parts(*(np.array(part.T, order="C") for part in (start, upper, signs, D)))
        classes = module._Classes(whole(T), parts, np.zeros(4, dtype=int), np.ones(4), 1e-9)
        classes._measure(np.arange(4))
        other = np.clip(start[:, 0] + share * (end - start)[:, 0], 0, upper[:, 0])
        classes._try(0, other)
        best = min(start[:, 0], other, key=gap)
        np.testing.assert_array_equal(classes.parts.x[0], best)
        assert classes.measures[0, :2].sum() == pytest.approx(gap(best))


def test_variables_of_a_sample_without_features_follow_from_their_linear_terms(monkeypatch):
    """Also where such a term is 0, between classes with orthogonal vectors, and no kernel is at hand."""
    monkeypatch.setattr(module, "_SMALL", 0)
    T, vectors, y = (
        np.random.default_rng(2).normal(size=(20, 4)),
        np.array([[1.0, 0], [0, 1], [-1, 0]]),
        np.arange(20) % 3,
    )
    T[:3] = 0.0
    D, upper = -(vectors @ vectors.T)[y], np.where(y[:, None] == np.arange(3), 0.0, 0.1)
    found = svm_features(whole(T[None]), [vectors], D, upper, -np.ones((20, 3)), tol=1e-8, max_iter=100)
    np.testing.assert_array_equal(found.x[:3], [[0, 0, 0.1], [0, 0, 0], [0.1, 0, 0]])
    rest = svm_features(whole(T[None, 3:]), [vectors], D[3:], upper[3:], -np.ones((17, 3)), tol=1e-8, max_iter=100)
    assert found.converged
    assert found.objective == pytest.approx(rest.objective + 0.1 + 0.1, rel=1e-7)


# a fifth more rounds than are needed now
ROUNDS = {"ovr": 53, "ovr, scaled": 83, "simplex": 48, "vectors": 25, "several kernels": 49}


@pytest.mark.parametrize("kind", KINDS)
def test_steps_over_features_end_soon_without_another_method(kind, monkeypatch):
    """Neither the kernel between samples nor interior points take over: the steps reach the solution themselves."""
    T, codes, D, upper, signs = program(kind)
    monkeypatch.setattr(module, "_rounds_left", lambda *given: 0.0)
    found = svm_features(in_blocks(T), codes, D, upper, signs, tol=1e-8, max_iter=ROUNDS[kind])
    assert found.converged
    assert found.objective == pytest.approx(over_kernel(T, codes, D, upper, signs, 1e-9).objective, rel=1e-7)


@pytest.mark.parametrize(("kind", "rows"), [("simplex", 120), ("several kernels", 120 * 4)])
def test_the_kernel_is_formed_only_where_it_is_small(kind, rows, monkeypatch):
    """It is between samples, or with several kernels between pairs of a sample and a class."""
    T, codes, D, upper, signs = program(kind)
    sizes = []
    monkeypatch.setattr(module, "_rounds_left", lambda *given: np.inf)
    monkeypatch.setattr(
        module, "class_qp", lambda Q, *given, **how: (sizes.append(len(Q)), class_qp(Q, *given, **how))[1]
    )
    for small in (rows - 1, rows):
        assert not sizes
        monkeypatch.setattr(module, "_SMALL", small)
        found = svm_features(whole(T), codes, D, upper, signs, tol=1e-8, max_iter=100)
        assert found.converged
    assert set(sizes) == {rows}


def test_the_gaps_of_classes_fall_from_the_losses_of_their_linear_terms(monkeypatch):
    """At α = 0 the gradient is -D, and the dual value is 0."""
    T, codes, D, upper, signs = program("ovr")
    D = D * np.random.default_rng(3).normal(size=D.shape)
    starts = set()
    monkeypatch.setattr(module, "_rounds_left", lambda gaps, goal: (starts.add(round(gaps[0], 12)), 0.0)[1])
    svm_features(whole(T), codes, D, upper, signs, tol=1e-15, max_iter=3)
    np.testing.assert_allclose(sorted(starts), np.sort(np.sum(upper * np.maximum(D, 0), axis=0)), rtol=1e-9)


def test_what_does_not_converge_says_so():
    T, codes, D, upper, signs = program("simplex", scale=300.0)
    found = svm_features(whole(T), codes, D, upper, signs, tol=1e-12, max_iter=2)
    assert found.status == "max_iter"
    assert found.gap > 1e-12 * found.objective


def test_features_that_do_not_fit_are_made_again():
    Phi = np.random.default_rng(0).normal(size=(50, 6))
    L = np.linalg.cholesky(Phi.T @ Phi + np.eye(6))
    nu, d, passes = np.linspace(1, 2, 50), np.repeat([0.3, 0.7], 3), []

    def parts():
        passes.append(1)
        blocks = ((Phi[s : s + 20], nu[s : s + 20]) for s in range(0, 50, 20))
        return scaled_features(blocks, [L, np.diag([2.0] * 6)], d, 8.0)

    kept = keep_features(parts, (2, 50, 6), 1e9)
    again = keep_features(parts, (2, 50, 6), 100)
    for _ in range(2):
        ((place, T),) = kept()
        rows = np.concatenate([part for _, part in again()], axis=1)
        np.testing.assert_array_equal(T, rows)
    assert place == slice(0, 50)
    assert len(passes) == 3  # one to keep, two to read again
    np.testing.assert_allclose(T[0], 2 * nu[:, None] * np.linalg.solve(L, (Phi * d).T).T, rtol=1e-10)
    np.testing.assert_allclose(T[1], 2 * nu[:, None] * Phi * d / 2, rtol=1e-12)


def test_threads_do_not_change_a_bit(monkeypatch):
    T, codes, D, upper, signs = program("ovr", n=3000, q=400, P=5)
    one, two = [], []
    for threads, found in ((1, one), (2, two)):
        monkeypatch.setattr("consilience._backend._n_threads", lambda threads=threads: threads)
        found.append(svm_features(whole(T), codes, D, upper, signs, tol=1e-4, max_iter=50).x)
    np.testing.assert_array_equal(one[0], two[0])
