"""Estimators with a gap: the published objective at their coefficients, and the optimum by other means."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import _optima as optima
import cases
import consilience as cs
import reference
from _claims import Claim, Problem, claim, draw, duals, fitted, kappa, squares_and, stopping
from consilience.kernels import RBF


# -- co-regularization
class _Coregularized(NamedTuple):
    """A drawn program of co-regularized views; the first l samples are labeled."""

    problem: Problem
    l: int
    terms: optima.Terms
    s: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, *, complete: bool = False, most: int = 30) -> "_Coregularized":
        """Return penalties over many orders, unlabeled samples, weights of samples, missing views."""
        problem = draw(rng, most=most)
        n, m = problem.n, problem.m
        present = np.ones((n, m), dtype=bool)
        if not complete and m > 1 and rng.random() < 0.3:
            present = cases.random_mask(rng, n, m, 0.3)
        grams = [K * here * here[:, None] for K, here in zip(problem.grams, present.T, strict=True)]
        laplacians = []
        for here in present.T:
            W = RBF(0.5)(rng.normal(size=(n, 2))) * here * here[:, None]
            laplacians.append(np.diag(W.sum(axis=1)) - W)
        s = rng.integers(1, 4, size=n) * 1.0 if rng.random() < 0.3 else np.ones(n)
        agreement, graph = (problem.power(-6, 2) * (rng.random() < 0.5) for _ in range(2))
        terms = optima.Terms(problem.power(-6, 2), agreement, graph, laplacians, present, s)
        l = n if rng.random() < 0.5 else int(rng.integers(3, n + 1))
        return cls(problem._replace(grams=grams), l, terms, s)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimators."""
        graph = {f"v{v}": L for v, L in enumerate(self.terms.laplacians)}
        return {"kernel": "precomputed", "alpha": self.terms.alpha, "agreement_penalty": self.terms.agreement,
                "graph_penalty": self.terms.graph, "graph": graph}  # fmt: skip

    @property
    def X(self) -> Any:
        """The views, with those that are missing."""
        present = self.terms.present
        return cases.gram_views(self.problem.grams, None if present.all() else present)

    def own(self, model: Any, loss: Callable[[np.ndarray], float]) -> tuple[float, float]:
        """Return the objective at the coefficients by the published formula, and its size."""
        a, terms, grams = duals(model, self.problem.n), self.terms, self.problem.grams
        factors = optima.combined(terms.present, model.view_weights_)[: self.l]

        def parts(a: np.ndarray, grams: Any, sign: float) -> tuple[np.ndarray, float]:
            f = np.array([K @ own for K, own in zip(grams, a, strict=True)])
            total = terms.alpha * sum(float(np.sum(own * x)) for own, x in zip(a, f, strict=True))
            for v in range(len(f)):
                L = terms.laplacians[v] if sign < 0 else np.abs(terms.laplacians[v])
                total += terms.graph * float(np.sum(f[v] * (L @ f[v])))
                for w in range(v):
                    both = self.s * terms.present[:, v] * terms.present[:, w]
                    total += terms.agreement * float(np.sum(both[:, None] * (f[v] + sign * f[w]) ** 2))
            return f, total

        f, penalty = parts(a, grams, -1.0)
        g = np.einsum("iv,vip->ip", factors, f[:, : self.l])
        _, large = parts(np.abs(a), [np.abs(K) for K in grams], 1.0)
        f_large = np.array([np.abs(K) @ np.abs(own) for K, own in zip(grams, a, strict=True)])
        outer = float(np.sum(np.einsum("iv,vip->ip", np.abs(factors), f_large[:, : self.l]) ** 2)) / self.l
        value = loss(g) + penalty
        return value, abs(value) + large + outer

    def best(self, c: np.ndarray) -> optima.Coordinates:
        """Return the program for weights of the views, in other coordinates."""
        return optima.coordinates(self.problem.grams, self.terms, c, self.l)


def coregularized_ridge(rng: np.random.Generator) -> Claim:
    """Co-regularized ridge with given weights of the views."""
    drawn = _Coregularized.draw(rng)
    Y, u = drawn.problem.targets(), drawn.s[: drawn.l] / drawn.s[: drawn.l].sum()
    Y[drawn.l :] = np.nan
    c = rng.normal(size=drawn.problem.m)
    model = fitted(cs.CoRegularizedRidge(view_weights=c, **drawn.parameters()), drawn.X, Y, drawn.s)
    own = drawn.own(model, lambda g: float(np.sum(u[:, None] * (Y[: drawn.l] - g) ** 2)))
    return claim(model, own, optima.least_squares(drawn.best(c), Y[: drawn.l], u))


def coregularized_learned(rng: np.random.Generator) -> Claim:
    """Co-regularized ridge with learned weights of the views, a problem that is not convex."""
    drawn = _Coregularized.draw(rng, complete=True, most=14)
    Y, u = drawn.problem.targets(), drawn.s[: drawn.l] / drawn.s[: drawn.l].sum()
    Y[drawn.l :] = np.nan
    order, radius, m = float(rng.choice([2, 2, 3, 6])), drawn.problem.power(-1, 1), drawn.problem.m
    model = cs.CoRegularizedRidge(
        view_weights="learned", weights_norm=radius, weights_order=order, random_state=0, n_restarts=2,
        **drawn.parameters(), **stopping(rng, 1, 2, 5),
    )  # fmt: skip
    model = fitted(model, drawn.X, Y, drawn.s)
    own = drawn.own(model, lambda g: float(np.sum(u[:, None] * (Y[: drawn.l] - g) ** 2)))
    at = lambda c: optima.least_squares(drawn.best(c), Y[: drawn.l], u)  # noqa: E731
    return claim(model, own, optima.best_weights(at, m, radius, order, rng, 40 * m))


def _svc(
    rng: np.random.Generator, drawn: _Coregularized, **more: Any
) -> tuple[Any, optima.Hinges, tuple[float, float]]:
    T = int(rng.integers(2, 4))
    codes = drawn.problem.codes(T)
    l = max(drawn.l, T)
    y = np.where(np.arange(len(codes)) < l, codes, np.nan)
    simplex = rng.random() < 0.5
    u = drawn.s[:l] / drawn.s[:l].sum()
    loss = optima.Hinges.of(codes[:l], T, cs.simplex_vectors(T) if simplex and T > 2 else None, u)
    model = cs.CoRegularizedSVC(class_vectors="simplex" if simplex else "ovr", **drawn.parameters(), **more)
    model = fitted(model, drawn.X, y, drawn.s)
    return model, loss, drawn.own(model, loss.value)


def coregularized_svc(rng: np.random.Generator) -> Claim:
    """Co-regularized support vector machines with given weights of the views."""
    drawn = _Coregularized.draw(rng, most=16)
    c = rng.normal(size=drawn.problem.m)
    model, loss, own = _svc(rng, drawn, view_weights=c, **stopping(rng, 0, 1, 2, 3))
    return claim(model, own, optima.hinges(drawn.best(c), loss))


def learned_svc(rng: np.random.Generator) -> Claim:
    """Co-regularized support vector machines with learned weights of the views."""
    drawn = _Coregularized.draw(rng, complete=True, most=9)
    order, radius, m = float(rng.choice([2, 3])), drawn.problem.power(-1, 1), drawn.problem.m
    how = stopping(rng, 1, 2, 5)
    how["tol"] = max(how["tol"], 1e-6)
    model, loss, own = _svc(
        rng,
        drawn,
        view_weights="learned",
        weights_norm=radius,
        weights_order=order,
        random_state=0,
        n_restarts=2,
        **how,
    )
    at = lambda c: optima.hinges(drawn.best(c), loss)  # noqa: E731
    return claim(model, own, optima.best_weights(at, m, radius, order, rng, 12 * m))


# -- metrics
def _metric(
    rng: np.random.Generator, problem: Problem, **more: Any
) -> tuple[Any, np.ndarray, np.ndarray, float, float]:
    """Return a fitted estimator, M, the targets, λ and η."""
    alpha, eta = problem.power(-5, 3), problem.power(-4, 3)
    Y, w = problem.targets(), rng.normal(size=problem.m)
    model = cs.ViewMetricRidge(
        "precomputed", alpha=alpha, metric_penalty=eta, **{"view_weights": w, **stopping(rng, 1, 2, 3), **more}
    )
    model = fitted(model, problem.X, Y)
    return model, reference.stacked(problem.grams, model.view_weights_), Y, alpha, eta


def _coefficients(model: Any, problem: Problem) -> np.ndarray:
    """Return G, view after view."""
    return duals(model, problem.n).reshape(problem.m * problem.n, -1)


def metric_per_output(rng: np.random.Generator) -> Claim:
    """A learned metric for each output."""
    problem = draw(rng)
    model, M, Y, alpha, eta = _metric(rng, problem)
    G = _coefficients(model, problem)
    total, best = 0.0, 0.0
    for y, g in zip(Y.T, G.T, strict=True):
        total += kappa(alpha, eta) * float(np.linalg.norm(g)) ** (4 / 3)
        other = reference.metric_coefficients(M, y, alpha, eta)
        best += squares_and(M, other, y, kappa(alpha, eta) * float(np.linalg.norm(other)) ** (4 / 3))[0]
    return claim(model, squares_and(M, G, Y, total), best)


def metric_of_all_outputs(rng: np.random.Generator) -> Claim:
    """One learned metric for all outputs."""
    problem = draw(rng, most=16)
    model, M, Y, alpha, eta = _metric(rng, problem, shared_metric=True)
    G = _coefficients(model, problem)
    s = np.linalg.svd(G, compute_uv=False)
    own = squares_and(M, G, Y, kappa(alpha, eta) * float(np.sum(s ** (4 / 3))))
    return claim(model, own, optima.singular_powers(M, Y, kappa(alpha, eta)))


def metric_block_sparse(rng: np.random.Generator) -> Claim:
    """A block-sparse metric."""
    problem = draw(rng, most=20)
    model, M, Y, alpha, eta = _metric(rng, problem, metric="block_sparse")
    G, parts = _coefficients(model, problem), np.hsplit(M, problem.m)
    penalty = 0.0
    for g in G.T:
        norms = np.array([np.linalg.norm(own) for own in np.split(g, problem.m)])
        penalty += 2 * np.sqrt(alpha * eta) * optima.block_norm(norms)
    best = sum(optima.block_sparse(parts, y, alpha * eta) for y in Y.T)
    return claim(model, squares_and(M, G, Y, penalty), best)


def metric_as_published(rng: np.random.Generator) -> Claim:
    """The objective in the metric and the coefficients, by the published formula with a pseudo-inverse."""
    problem = draw(rng, most=12, outputs=1)._replace(P=1)
    sparse = rng.random() < 0.5
    model, M, Y, alpha, eta = _metric(
        rng, problem, metric="block_sparse" if sparse else "learned", tol=1e-12, max_iter=2000
    )
    g, y = _coefficients(model, problem)[:, 0], Y[:, 0]
    # A = F F' has rank one: F'A†F = 1, so that g'A†g is (F'g)²/‖F‖⁴
    F = np.concatenate(list(model.metric_.factors[0].values()))[:, 0]
    length = float(F @ F)
    norms = np.array([np.linalg.norm(own) for own in np.split(F, problem.m)])
    size = length**2 if not sparse else optima.block_norm(norms) ** 2
    inside = float(F @ g) ** 2 / length**2 if length else 0.0
    own = squares_and(M, g, y, alpha * inside + eta * size)
    penalty = kappa(alpha, eta) * float(np.linalg.norm(g)) ** (4 / 3)
    if sparse:
        norms = np.array([np.linalg.norm(part) for part in np.split(g, problem.m)])
        penalty = 2 * np.sqrt(alpha * eta) * optima.block_norm(norms)
    return claim(model, own, squares_and(M, g, y, penalty)[0])


def metric_fixed(rng: np.random.Generator) -> Claim:
    """A diagonal metric, the covariance, or a given metric."""
    problem = draw(rng)
    n, m = problem.n, problem.m
    kind = str(rng.choice(["diagonal", "covariance", "given"]))
    F = np.kron(np.ones((m, 1)), np.eye(n)) / np.sqrt(n)
    if kind == "given":
        F = rng.normal(size=(m * n, int(rng.integers(1, m * n)))) / np.sqrt(m * n)
    A = F @ F.T
    model, M, Y, alpha, _ = _metric(rng, problem, metric=A if kind == "given" else kind)
    G = _coefficients(model, problem)
    if kind == "diagonal":  # over roots of the kernels: the norms are those of the functions
        f = [K @ g for K, g in zip(problem.grams, np.split(G, m), strict=True)]
        penalty = alpha * sum(float(np.sum(x * g)) for x, g in zip(f, np.split(G, m), strict=True))
        Phi = optima.root(sum(c**2 * K for c, K in zip(model.view_weights_, problem.grams, strict=True)))
    else:
        inner = np.linalg.lstsq(F, G, rcond=1e-13)[0]
        assert np.abs(F @ inner - G).max() <= 1e-7 * np.abs(G).max(), "the coefficients leave the range of the metric"
        penalty, Phi = alpha * float(np.sum(inner**2)), M @ F
    at = optima.Coordinates(Phi, np.sqrt(alpha) * np.eye(Phi.shape[1]))
    return claim(model, squares_and(M, G, Y, penalty), optima.least_squares(at, Y, np.ones(n)))


def metric_learned_weights(rng: np.random.Generator) -> Claim | None:
    """A learned or fixed metric with learned weights of the views, a problem that is not convex."""
    problem = draw(rng, most=10)
    n, m = problem.n, problem.m
    kind = str(rng.choice(["learned", "diagonal", "covariance"]))
    model, M, Y, alpha, eta = _metric(
        rng, problem, metric=kind, view_weights="learned", random_state=0, n_restarts=2, **stopping(rng, 1, 3)
    )
    if model.certificate().gap is None:
        return None
    G = _coefficients(model, problem)
    A = np.kron(np.ones((m, m)), np.eye(n)) / n

    def at(w: np.ndarray) -> float:
        M = reference.stacked(problem.grams, w)
        if kind == "learned":
            own = [reference.metric_coefficients(M, y, alpha, eta) for y in Y.T]
            norms = np.array([np.linalg.norm(g) for g in own])
            return squares_and(M, np.array(own).T, Y, kappa(alpha, eta) * float(np.sum(norms ** (4 / 3))))[0]
        K = sum(c**2 * K for c, K in zip(w, problem.grams, strict=True)) if kind == "diagonal" else M @ A @ M.T
        R = optima.root((K + K.T) / 2)
        return optima.least_squares(optima.Coordinates(R, np.sqrt(alpha) * np.eye(R.shape[1])), Y, np.ones(n))

    if kind == "learned":
        penalty = kappa(alpha, eta) * float(np.sum(np.linalg.norm(G, axis=0) ** (4 / 3)))
    elif kind == "diagonal":
        parts = zip(problem.grams, np.split(G, m), strict=True)
        penalty = alpha * sum(float(np.sum(g * (K @ g))) for K, g in parts)
    else:
        penalty = alpha * n / m**2 * float(np.sum(sum(np.split(G, m)) ** 2))
    radius = float(np.linalg.norm(model.view_weights_))
    steps = (6 if kind == "learned" else 25) * m
    return claim(model, squares_and(M, G, Y, penalty), optima.best_weights(at, m, radius, 2.0, rng, steps))


# -- kernels that are learned
def multiple_kernels(rng: np.random.Generator) -> Claim:
    """Weights of kernels with a norm p between 1 and infinity."""
    problem = draw(rng, most=20)
    p, alpha = float(rng.choice([1.0, 1.05, 4 / 3, 2.0, 8.0, np.inf])), problem.power(-5, 3)
    shared = problem.P == 1 or rng.random() < 0.5
    Y, m = problem.targets(), problem.m
    model = cs.MultipleKernelRidge("precomputed", p=p, alpha=alpha, shared_weights=shared, **stopping(rng, 1, 2, 3))
    model = fitted(model, problem.X, Y)
    a, q = duals(model, problem.n) / m, 2.0 if np.isinf(p) else 2 * p / (p + 1)  # views are averaged
    groups = [slice(0, problem.P)] if shared else [slice(k, k + 1) for k in range(problem.P)]
    squares = np.array(
        [[np.sum(own[:, k] * (K @ own[:, k])) for k in groups] for K, own in zip(problem.grams, a, strict=True)]
    )
    penalty = alpha * float(np.sum(np.sum(np.maximum(squares, 0) ** (q / 2), axis=0) ** (2 / q)))
    own = squares_and(np.hstack(problem.grams), a.reshape(-1, problem.P), Y, penalty)
    best = sum(optima.multiple_kernels(problem.grams, Y[:, k], alpha, p) for k in groups)
    return claim(model, own, best)


def output_kernel(rng: np.random.Generator) -> Claim:
    """A kernel between outputs."""
    problem = draw(rng, most=16)
    alpha, Y, w = problem.power(-4, 3), problem.targets(), rng.normal(size=problem.m)
    model = cs.OutputKernelRidge("precomputed", alpha=alpha, view_weights=w, **stopping(rng, 0, 1, 2))
    model = fitted(model, problem.X, Y)
    a = duals(model, problem.n)
    inner = sum(own.T @ K @ own for K, own in zip(problem.grams, a, strict=True))
    s = np.sqrt(np.maximum(np.linalg.eigvalsh(inner), 0))
    M = reference.stacked(problem.grams, w)
    own = squares_and(M, a.reshape(-1, problem.P), Y, kappa(alpha, alpha) * float(np.sum(s ** (4 / 3))))
    R = optima.root(sum(c**2 * K for c, K in zip(w, problem.grams, strict=True)))
    return claim(model, own, optima.singular_powers(R, Y, kappa(alpha, alpha)))


# -- margins
def _margin_claim(model: Any, Q: np.ndarray, C: np.ndarray, vectors: np.ndarray | None, b: np.ndarray | float) -> Claim:
    alpha = np.zeros(len(Q))
    alpha[model.support_] = model.dual_coef_
    assert (alpha >= 0).all(), "a dual variable is negative"
    assert (alpha <= C * (1 + 1e-12)).all(), "a dual variable is above its bound"
    own = 0.5 * float(alpha @ Q @ alpha) + float(C @ np.maximum(0, 1 - Q @ alpha - b))
    size = float(alpha @ np.abs(Q) @ alpha) + float(C @ (1 + np.abs(Q) @ alpha + np.abs(b)))
    return claim(model, (own, size), optima.margins(Q, C, vectors))


def max_margin(rng: np.random.Generator) -> Claim:
    """Maximum margin classification."""
    problem = draw(rng)
    T = int(rng.integers(2, 5))
    problem = problem if problem.n >= T else draw(np.random.default_rng(5), most=30)
    codes, kind = problem.codes(T), str(rng.choice(["simplex", "indicator"]))
    vectors = cs.simplex_vectors(T) if kind == "simplex" else np.eye(T)
    C, s = problem.power(-4, 3), rng.uniform(0.5, 2, size=problem.n)
    how = stopping(rng, 1, 2, 4)
    model = cs.MaxMarginClassifier(
        "precomputed", C=C, class_vectors=kind, **{**how, "max_iter": max(how["max_iter"], 1)}
    )
    model = fitted(model, problem.X, codes, s)
    Q = sum(problem.grams) * (vectors @ vectors.T)[np.ix_(codes, codes)]
    return _margin_claim(model, Q, C * s, None, 0.0)


def max_margin_intercept(rng: np.random.Generator) -> Claim:
    """Maximum margin classification with an intercept."""
    problem = draw(rng, most=20)
    T = int(rng.integers(2, 4))
    codes, vectors, C = problem.codes(T), cs.simplex_vectors(T), problem.power(-3, 2)
    how = stopping(rng, 1, 2, 4)
    model = fitted(cs.MaxMarginClassifier("precomputed", C=C, fit_intercept=True, **how), problem.X, codes)
    Q = sum(problem.grams) * (vectors @ vectors.T)[np.ix_(codes, codes)]
    return _margin_claim(model, Q, np.full(problem.n, C), vectors[codes], model.intercept_[codes])


def max_margin_outputs(rng: np.random.Generator) -> Claim:
    """Maximum margin regression, with a kernel between outputs."""
    problem = draw(rng)
    y, C, gamma = problem.targets()[:, 0], problem.power(-3, 3), problem.power(-2, 1)
    how = stopping(rng, 1, 2, 4)
    model = fitted(cs.MaxMarginRegressor("precomputed", output_kernel=RBF(gamma), C=C, **how), problem.X, y)
    Q = sum(problem.grams) * np.exp(-gamma * (y[:, None] - y) ** 2)
    return _margin_claim(model, Q, np.full(problem.n, C), None, 0.0)


# -- vector-valued functions
def _vector_valued(rng: np.random.Generator, problem: Problem) -> tuple[Any, float, optima.Terms]:
    """Return an operator over views and samples, its penalty, and the terms of the program."""
    size, penalty = problem.m * problem.n, problem.power(-5, 1)
    F = rng.normal(size=(size, int(rng.integers(1, 6))))
    operator = F @ F.T / size if rng.random() < 0.6 else None
    alpha = problem.power(-6, 2)
    return operator, penalty, optima.Terms(alpha, operator=None if operator is None else penalty * operator)


def _vector_own(
    model: Any, problem: Problem, terms: optima.Terms, loss: Callable[[np.ndarray], float]
) -> tuple[float, float]:
    a = duals(model, problem.n)
    f = np.array([K @ own for K, own in zip(problem.grams, a, strict=True)])
    large = np.array([np.abs(K) @ np.abs(own) for K, own in zip(problem.grams, a, strict=True)])
    penalty, size = terms.alpha * float(np.sum(a * f)), terms.alpha * float(np.sum(np.abs(a) * large))
    if terms.operator is not None:
        flat, wide = f.reshape(-1, f.shape[2]), large.reshape(-1, f.shape[2])
        penalty += float(np.sum(flat * (terms.operator @ flat)))
        size += float(np.sum(wide * (np.abs(terms.operator) @ wide)))
    g = np.einsum("vpq,viq->ip", model.combination_, f)
    value = loss(g) + penalty
    return value, abs(value) + size + float(np.sum(large**2)) / problem.n


def vector_valued_ridge(rng: np.random.Generator) -> Claim:
    """Vector-valued least squares with any combination of views and any operator."""
    problem = draw(rng, most=12, views=3)
    P, Q, n = problem.P, int(rng.integers(1, 4)), problem.n
    operator, penalty, terms = _vector_valued(rng, problem)
    C, Y = rng.normal(size=(problem.m, P, Q)), problem.targets()
    Y[rng.random(Y.shape) < 0.2] = np.nan
    Y[0] = 1.0
    seen = ~np.isnan(Y)
    l = int(seen.any(axis=1).sum())
    model = cs.VectorValuedRegressor(
        "precomputed", alpha=terms.alpha, combination=C, operator=operator, operator_penalty=penalty
    )
    model = fitted(model, problem.X, Y)
    own = _vector_own(model, problem, terms, lambda g: float(np.nansum((Y - g) ** 2)) / l)
    # one column of unknowns: the coordinates of all views and values
    at = optima.coordinates(problem.grams, terms, np.ones(problem.m), n)
    sizes = [optima.root(K).shape[1] for K in problem.grams]
    place = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    Phi = np.zeros((n, P, sum(sizes), Q))
    for v, here in enumerate(place):
        Phi[:, :, here] = np.einsum("ik,pq->ipkq", at.Phi[:, here], C[v])
    whole = optima.Coordinates(Phi.reshape(n * P, -1)[seen.ravel()], np.kron(at.E, np.eye(Q)))
    return claim(model, own, optima.least_squares(whole, Y.ravel()[seen.ravel(), None], np.full(seen.sum(), 1 / l)))


def vector_valued_svm(rng: np.random.Generator) -> Claim:
    """Vector-valued support vector machines with an operator."""
    problem = draw(rng, most=12, views=3)
    T, c = int(rng.integers(2, 4)), rng.normal(size=problem.m)
    codes, ovr = problem.codes(T), rng.random() < 0.5
    operator, penalty, terms = _vector_valued(rng, problem)
    vectors = None if ovr else cs.simplex_vectors(T)
    model = cs.VectorValuedClassifier(
        "precomputed", alpha=terms.alpha, combination=c, operator=operator, operator_penalty=penalty,
        class_vectors="ovr" if ovr else "simplex", **stopping(rng, 0, 1, 2),
    )  # fmt: skip
    model = fitted(model, problem.X, codes)
    loss = optima.Hinges.of(codes, T, vectors, np.full(problem.n, 1 / problem.n))
    own = _vector_own(model, problem, terms, loss.value)
    return claim(model, own, optima.hinges(optima.coordinates(problem.grams, terms, c, problem.n), loss))
