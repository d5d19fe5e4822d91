"""Every algorithm again: slow, short, and made from the definitions alone."""

from collections import Counter
from itertools import combinations, permutations, product

import numpy as np
import scipy.optimize


def gram(k, X, Y=None):
    """A kernel's matrix, pair by pair."""
    return np.array([[k(x, z) for z in (X if Y is None else Y)] for x in X])


def linear(x, z):
    return sum(a * b for a, b in zip(x, z, strict=True))


def squared_distance(x, z):
    return sum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def gaussian(x, z, gamma):
    return np.exp(-gamma * squared_distance(x, z))


def city_block(x, z):
    return sum(abs(a - b) for a, b in zip(x, z, strict=True))


def chi_squared(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def additive_chi_squared(x, z):
    return sum(2 * a * b / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def intersection(x, z):
    return sum(min(a, b) for a, b in zip(x, z, strict=True))


def centered(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def normalized(K):
    return np.array([[K[i, j] / np.sqrt(K[i, i] * K[j, j]) for j in range(len(K))] for i in range(len(K))])


def nystroem(K, landmarks):
    """K(X, Z) K(Z, Z)⁺ K(Z, X)."""
    C = K[:, landmarks]
    return C @ np.linalg.pinv(K[np.ix_(landmarks, landmarks)], hermitian=True) @ C.T


def combine(outputs, weights, present):
    """Σ_v c_v f_v over the views present, c rescaled so that Σ|c| stays; sample by sample."""
    n, m, P = outputs.shape
    result = np.zeros((n, P))
    for i in range(n):
        there = [v for v in range(m) if present[i, v]]
        scale = sum(abs(w) for w in weights) / sum(abs(weights[v]) for v in there)
        for v in there:
            result[i] += scale * weights[v] * outputs[i, v]
    return result


def late_fusion(models, views, present, weights):
    """Weighted mean of the probabilities of the models whose view is there."""
    rows = []
    for i in range(len(present)):
        there = [v for v in range(len(models)) if present[i, v]]
        predicted = [weights[v] * models[v].predict_proba(views[v][i : i + 1])[0] for v in there]
        rows.append(np.sum(predicted, axis=0) / sum(weights[v] for v in there))
    return np.array(rows)


def spectrum(s, t, length):
    counts = [Counter(tuple(r[i : i + length]) for i in range(len(r) - length + 1)) for r in (s, t)]
    return sum(counts[0][u] * counts[1][u] for u in counts[0])


def subsequence(s, t, length, decay):
    features = []
    for r in (s, t):
        weights = Counter()
        for places in combinations(range(len(r)), length):
            weights[tuple(r[p] for p in places)] += decay ** (places[-1] - places[0] + 1)
        features.append(weights)
    return sum(features[0][u] * features[1][u] for u in features[0])


def subset_tree(s, t, decay):
    """Collins & Duffy 2001 by plain recursion, on nested tuples."""
    return sum(_common(v, w, decay) for v in _nodes(s) for w in _nodes(t))


def _nodes(tree):
    return [tree, *(node for child in tree[1:] if isinstance(child, tuple) for node in _nodes(child))] if tree else []


def _production(node):
    return [node[0], *((child[0], "inner") if isinstance(child, tuple) else (child, "leaf") for child in node[1:])]


def _common(v, w, decay):
    if _production(v) != _production(w):
        return 0.0
    value = decay
    for a, b in zip(v[1:], w[1:], strict=True):
        value *= 1 + (_common(a, b, decay) if isinstance(a, tuple) else 0)
    return value


def common_fragments(s, t):
    """The number of pairs of equal fragments: every fragment of both trees written out."""
    counts = [Counter(fragment for node in _nodes(tree) for fragment in _fragments(node)) for tree in (s, t)]
    return sum(counts[0][u] * counts[1][u] for u in counts[0])


def _fragments(node):
    """All fragments rooted at a node; ("NP",) stands for an inner node cut off, (label, (children)) for a kept one."""
    choices = [[(c[0],), *_fragments(c)] if isinstance(c, tuple) else [c] for c in node[1:]]
    return [(node[0], chosen) for chosen in product(*choices)]


def extended_solve(A, B):
    """A⁻¹B for a positive definite A in extended precision: Cholesky's factor column by column, refined once."""
    A, B = np.array(A, dtype=np.longdouble), np.array(B, dtype=np.longdouble)
    n, L, X = len(A), np.zeros_like(A), np.zeros_like(B)
    for j in range(n):
        L[j:, j] = A[j:, j] - L[j:, :j] @ L[j, :j]
        L[j:, j] /= np.sqrt(L[j, j])
    for _ in range(2):
        R = B - A @ X
        for j in range(n):
            R[j] = (R[j] - L[j, :j] @ R[:j]) / L[j, j]
        for j in reversed(range(n)):
            R[j] = (R[j] - L[j + 1 :, j] @ R[j + 1 :]) / L[j, j]
        X = X + R
    return X


# -- vector-valued manifold and co-regularized learning (Minh, Bazzani and Murino 2016)
def coregularized_blocks(grams, laplacians):
    """G[x] and L of the paper: entry (i, j) is the m x m diagonal matrix of the views' values."""
    m, N = len(grams), len(grams[0])
    G, L = np.zeros((N * m, N * m)), np.zeros((N * m, N * m))
    for v in range(m):
        G[v::m, v::m], L[v::m, v::m] = grams[v], laplacians[v]
    return G, L


def coregularized_ridge(grams, laplacians, Y, alpha, agreement, graph, c, R=None):
    """Theorem 10 literally: B A R + lγ_A A = Y_C, an (Nm) x (Nm) system for each eigenvalue of R; A_v as a list."""
    m, N, (l, P) = len(grams), len(grams[0]), Y.shape
    G, L = coregularized_blocks(grams, laplacians)
    J = np.diag((np.arange(N) < l).astype(float))
    M = np.kron(J, np.outer(c, c)) + l * agreement * np.kron(np.eye(N), m * np.eye(m) - 1) + l * graph * L
    B = M @ G
    Y_C = np.zeros((N * m, P))
    Y_C[: l * m] = np.kron(Y, np.asarray(c)[:, None])
    values, U = np.linalg.eigh(np.eye(P) if R is None else R)
    parts = [np.linalg.solve(lam * B + l * alpha * np.eye(N * m), Y_C @ u) for lam, u in zip(values, U.T, strict=True)]
    A = np.column_stack(parts) @ U.T
    return [A[v::m] for v in range(m)]


def coregularized_labeled_kernel(grams, laplacians, l, alpha, agreement, graph, c):
    """Q_G of equation (194): (I' ⊗ c') G (γ_B I ⊗ M_m + γ_W L) G + γ_A I)⁻¹ (I ⊗ c)."""
    m, N = len(grams), len(grams[0])
    G, L = coregularized_blocks(grams, laplacians)
    M = agreement * np.kron(np.eye(N), m * np.eye(m) - 1) + graph * L
    E = np.kron(np.eye(N)[:, :l], np.asarray(c)[:, None])
    return E.T @ G @ np.linalg.solve(M @ G + alpha * np.eye(N * m), E)


def coregularized_least_squares(grams, laplacians, present, Y, s, alpha, agreement, graph, c):
    """Minimize the objective, stacked as rows of one least squares problem; missing views have no terms. f_v as a list.

    The unknowns are b_v, where f_v = R_v b_v and K_v = R_v R_v'. The norm of f_v is then that of b_v, and the rows of
    its penalty are √α times the identity. No singular value is below √α, so that none has to be truncated. With the
    coefficients of K_v as unknowns, the singular values fall gradually to rounding level. What is truncated there
    depends on the version of LAPACK, and the solution with it.
    """
    m, (l, P) = len(grams), Y.shape
    scale, rows, right = s[:l].sum(), [], []
    roots = [U * np.sqrt(np.maximum(values, 0)) for values, U in map(np.linalg.eigh, grams)]
    ours = [np.hstack([R if w == v else np.zeros_like(R) for w in range(m)]) for v, R in enumerate(roots)]
    nu = np.abs(c).sum() / (present @ np.abs(c))
    rows.append(
        np.sqrt(s[:l] / scale)[:, None] * sum(c[v] * (nu * present[:, v])[:l, None] * ours[v][:l] for v in range(m))
    )
    right.append(np.sqrt(s[:l] / scale)[:, None] * Y)
    rows.append(np.sqrt(alpha) * np.eye(ours[0].shape[1]))
    for v, L in enumerate(laplacians):
        values, U = np.linalg.eigh(L)
        rows.append(np.sqrt(graph * np.maximum(values, 0))[:, None] * (U.T @ ours[v]))
        rows += [
            np.sqrt(agreement * s * present[:, v] * present[:, w])[:, None] * (ours[v] - ours[w]) for w in range(v)
        ]
    right += [np.zeros((len(part), P)) for part in rows[1:]]
    b = np.linalg.lstsq(np.vstack(rows), np.vstack(right))[0]
    return [ours[v] @ b for v in range(m)]


def simplex_smo(Q_G, of, P, eps, rng, max_steps, alpha=None):
    """Algorithm 3 of the paper: a random violator at a time, a whole row of Q_G ⊗ Q_S a step."""
    l = len(of)
    Q_S = (P / (P - 1)) * np.eye(P) - 1 / (P - 1)
    alpha = np.zeros((P, l)) if alpha is None else alpha
    free = np.arange(P)[:, None] != of
    for step in range(max_steps):  # noqa: B007
        h = -0.5 * Q_S @ alpha @ Q_G  # <s_k, Cf(x_i)>
        margin = -1 / (P - 1)
        wrong = free & (((alpha < 1 / l) & (h > margin + eps)) | ((alpha > 0) & (h < margin - eps)))
        if not wrong.any():
            break
        k, i = rng.choice(np.argwhere(wrong))
        pull = 2 / (P - 1) - Q_S[k] @ alpha @ Q_G[:, i]
        alpha[k, i] = min(max(alpha[k, i] + pull / (Q_S[k, k] * Q_G[i, i]), 0), 1 / l)
    return alpha, step + 1


# -- metric learning (Huusari, Kadri and Capponi 2018), multiple and output kernels (Kloft et al., Dinuzzo et al. 2011)
def stacked(grams, w, present=None):
    """M = [w_1 K_1 .. w_m K_m]; rows with missing views are rescaled so that Σ|w| stays."""
    present = np.ones((len(grams[0]), len(grams)), bool) if present is None else present
    nu = np.abs(w).sum() / (present @ np.abs(w))
    return np.hstack([nu[:, None] * w[v] * K for v, K in enumerate(grams)])


def metric_coefficients(M, y, alpha, metric_penalty):
    """g of ‖y - Mg‖² + κ‖g‖^(4/3) by bisection on ρ = (2κ/3)‖g‖^(-2/3), a problem of least squares each."""
    goal = 2 * metric_penalty ** (1 / 3) * (alpha / 2) ** (2 / 3)
    low, high, n = -60.0, 60.0, M.shape[1]
    for _ in range(200):
        rho = np.exp((low + high) / 2)
        g = np.linalg.lstsq(np.vstack([M, np.sqrt(rho) * np.eye(n)]), np.r_[y, np.zeros(n)])[0]
        low, high = ((low + high) / 2, high) if rho * np.linalg.norm(g) ** (2 / 3) < goal else (low, (low + high) / 2)
    return g


def metric_ridge(M, A, y, alpha):
    """Equation (8): g for a metric that is given."""
    return np.linalg.solve(M.T @ M + alpha * np.linalg.pinv(A, hermitian=True), M.T @ y)


def metric_objective(M, A, g, y, alpha, metric_penalty, blocks=None):
    """Equations (7) and (11): the objective in both variables."""
    if blocks is None:
        size = np.sum(A**2)
    else:
        parts = np.split(np.arange(len(A)), np.cumsum(blocks)[:-1])
        norms = np.array([[np.linalg.norm(A[np.ix_(a, b)]) for b in parts] for a in parts])
        size = np.trace(norms) + np.sqrt(2) * np.sum(np.triu(norms, 1))
    pinv = np.linalg.pinv(A, rcond=1e-10, hermitian=True)
    return np.sum((y - M @ g) ** 2) + alpha * np.sum(g * (pinv @ g)) + metric_penalty * size


def metric_gradient_steps(M, y, alpha, metric_penalty, step, rounds, inner):
    """Algorithm 1 as written: g for A, then A ← (1 - 2μη) A + μλ A†gg'A† with a fixed step; A and g of each round."""
    A, found = np.eye(M.shape[1]), []
    for _ in range(rounds):
        g = metric_ridge(M, A, y, alpha)
        for _ in range(inner):
            h = np.linalg.pinv(A, hermitian=True) @ g
            A = (1 - 2 * step * metric_penalty) * A + step * alpha * np.outer(h, h)
        found.append((A, g))
    return found


def multiple_kernels(grams, Y, alpha, p, rounds):
    """The published alternation: f for d, then d_v ∝ ‖f_v‖^(2/(p+1)) with ‖d‖_p = 1; d and the dual coefficients."""
    d = np.full(len(grams), len(grams) ** (-1 / p))
    for _ in range(rounds):
        B = np.linalg.solve(sum(w * K for w, K in zip(d, grams, strict=True)) + alpha * np.eye(len(Y)), Y)
        norms = np.array([w * np.sqrt(np.sum(B * (K @ B))) for w, K in zip(d, grams, strict=True)])
        d = norms ** (2 / (p + 1))
        d /= np.linalg.norm(d, p)
    return d, B


def output_kernels(K, Y, alpha, rounds):
    """Turns of f and L, by the (nP) x (nP) system; L = (½)^⅓ (C'KC)^⅓ with f = KC."""
    n, P = Y.shape
    L = np.eye(P)
    for _ in range(rounds):
        solved = np.linalg.solve(np.kron(L, K) + alpha * np.eye(n * P), Y.T.ravel())
        C = solved.reshape(P, n).T @ L
        values, vectors = np.linalg.eigh(C.T @ K @ C)
        L = (vectors * np.cbrt(np.maximum(values, 0) / 2)) @ vectors.T
    return L, K @ C


def margin_dual(Q, upper, target, sweeps=20000):
    """min ½ α'Qα - target'α over the box, one variable after the other, the gradient made anew each time."""
    alpha = np.zeros(len(Q))
    for _ in range(sweeps):
        before = alpha.copy()
        for i in range(len(Q)):
            gradient = Q[i] @ alpha - target[i]
            if Q[i, i] > 0:
                alpha[i] = min(max(alpha[i] - gradient / Q[i, i], 0), upper[i])
            else:
                alpha[i] = upper[i] if gradient < 0 else 0
        if np.abs(alpha - before).max() < 1e-14:
            break
    return alpha


def margin_objective(Q, alpha, upper):
    """½ ‖W‖² + Σ upper ξ."""
    return 0.5 * alpha @ Q @ alpha + upper @ np.maximum(0, 1 - Q @ alpha)


def vector_perceptron(Phi, Y, margin, step, epochs):
    """Figure 1: W itself, sample by sample; the operator and the number of updates."""
    W, updates = np.zeros((Y.shape[1], Phi.shape[1])), 0
    for _ in range(epochs):
        before = updates
        for x, y in zip(Phi, Y, strict=True):
            if y @ W @ x < margin:
                W += step * np.outer(y, x)
                updates += 1
        if updates == before:
            break
    return W, updates


def dual_vector_perceptron(Q, margin, step, epochs):
    """Figure 2: all coefficients at once."""
    alpha, updates = np.zeros(len(Q)), 0
    for _ in range(epochs):
        before = updates
        for row in Q:
            if row @ alpha < margin:
                alpha = alpha + step * row
                updates += 1
        if updates == before:
            break
    return alpha, updates


# -- online estimators
def p_norm_link(p):
    return lambda v: np.sign(v) * abs(v) ** (p - 1) / (np.sum(abs(v) ** p) ** (1 / p) if v.any() else 1) ** (p - 2)


def matrix_link(p, prior=None):
    """W = V (V'V)^(p-1) / ‖V‖^(2(p-1)), by the singular values; columns are views."""

    def link(V):
        N = V.T @ V + np.diag(np.zeros(V.shape[1]) if prior is None else prior)
        values, Q = np.linalg.eigh(N)
        values = np.maximum(values, 0)
        norm = np.sum(values**p) ** (1 / p)
        return V @ (Q * (values / norm) ** (p - 1)) @ Q.T if norm > 0 else V

    return link


def online(rows, codes, n_classes, link, threshold, step):
    """Score, decide, step: rows of any shape, W = link(V), `step` of margin and squared length; two classes share V."""
    V = np.zeros((1 if n_classes == 2 else n_classes, *rows[0].shape))
    scores, wrong, hypotheses = [], [], [np.array([link(v) for v in V])]
    for x, c in zip(rows, codes, strict=True):
        W = hypotheses[-1]
        s = np.array([np.sum(w * x) for w in W])
        others = [t for t in range(len(s)) if t != c]
        r = max(others, key=lambda t: s[t]) if n_classes > 2 else None
        size = sum(np.sum(abs(w * x)) for w in W)
        m = s[c] - s[r] if n_classes > 2 else (2 * c - 1) * s[0]
        m = 0.0 if abs(m) <= 1e-11 * size else m
        scores.append(s), wrong.append(m <= 0)
        if m <= threshold + 1e-11 * threshold:
            tau = step(m, np.sum(x * x) * (1 if r is None else 2))
            V[0 if r is None else c] += tau * x * (1 if r is not None else 2 * c - 1)
            V[r if r is not None else slice(0, 0)] -= tau * x
        hypotheses.append(np.array([link(v) for v in V]))
    return np.array(scores), np.array(wrong), hypotheses


def budgeted(rows, codes, n_classes, link, threshold, budget):
    """`online` with V summed from the last samples with a step of 1: mistakes, {sample: coefficients}, all (V, W)."""
    kept, wrong, hypotheses = {}, [], []
    for i in range(len(codes) + 1):
        V = np.zeros((1 if n_classes == 2 else n_classes, *rows[0].shape))
        V = V + sum(np.multiply.outer(a, rows[s]) for s, a in kept.items())
        W = np.array([link(v) for v in V])
        hypotheses.append((V, W))
        if i == len(codes):
            return np.array(wrong), kept, hypotheses
        s, c, a = np.array([np.sum(w * rows[i]) for w in W]), codes[i], np.zeros(len(W))
        r = max((t for t in range(len(s)) if t != c), key=lambda t: s[t]) if n_classes > 2 else None
        m = (2 * c - 1) * s[0] if r is None else s[c] - s[r]
        wrong.append(m <= 1e-10)
        if m <= threshold + 1e-10:
            a[[0] if r is None else [c, r]] = [2 * c - 1] if r is None else [1, -1]
            kept[i] = a
            kept = dict(list(kept.items())[-budget:])


def regression(rows, y, link, epsilon, step, p=1.0):
    """Score, compare, step: `step` of the distance from the interval, the squared group norm and the direction."""
    V = np.zeros(rows[0].shape)
    scores, hypotheses = [], [link(V)]
    for x, target in zip(rows, y, strict=True):
        scores.append(np.sum(hypotheses[-1] * x))
        error = target - scores[-1]
        if abs(error) > epsilon + 1e-11:
            size = np.sum(np.sum(x**2, axis=0) ** p) ** (1 / p) if x.ndim == 2 else np.sum(x**2)
            V = V + np.sign(error) * step(abs(error) - epsilon, size, error > 0) * x
        hypotheses.append(link(V))
    return np.array(scores), hypotheses


def projected_regression(K, y, epsilon, threshold, budget, C):
    """PA-I regression within the span of few samples, solved anew each time: scores, support, coefficients."""
    S, alpha, scores = [], np.zeros(len(K)), []
    for i, target in enumerate(y):
        scores.append(alpha @ K[:, i])
        gap = abs(target - scores[-1]) - epsilon
        if gap > 1e-11:
            change = np.zeros(len(K))
            change[S] = np.linalg.solve(K[np.ix_(S, S)], K[S, i])
            size = K[S, i] @ change[S]
            if K[i, i] - size > max(threshold**2, 1e-9) and len(S) < budget:
                S, change, size = [*S, i], np.eye(len(K))[i], K[i, i]
            alpha = alpha + np.sign(target - scores[-1]) * min(C, gap / size) * change
    return np.array(scores), S, alpha


def votes(hypotheses, wrong_steps, rows):
    """Every hypothesis votes as often as it was used, the last once more; none before the first step."""
    total = np.zeros((len(rows), len(hypotheses[0])))
    for k, W in enumerate(hypotheses):
        if k > 0 and any(wrong_steps[:k]):
            S = np.array([[np.sum(w * x) for w in W] for x in rows])
            S = np.where(abs(S) <= 1e-11 * np.array([[np.sum(abs(w * x)) for w in W] for x in rows]), 0, S)
            total += np.sign(S) if S.shape[1] == 1 else np.eye(S.shape[1])[S.argmax(axis=1)]
    return total


def projectron(K, codes, n_classes, threshold, plus, squared=False):
    """Projectron(++), the Gram matrix of the support solved anew each time: scores, support, coefficients."""
    S, alpha, scores = [], np.zeros((1 if n_classes == 2 else n_classes, len(K))), []
    for i, c in enumerate(codes):
        s = alpha @ K[:, i]
        r = max((t for t in range(len(s)) if t != c), key=lambda t: s[t]) if n_classes > 2 else None
        m = s[c] - s[r] if r is not None else (2 * c - 1) * s[0]
        scores.append(s)
        d = np.linalg.solve(K[np.ix_(S, S)], K[S, i])
        inside = K[S, i] @ d
        delta = max(K[i, i] - inside, 0) ** (1 if squared else 0.5)
        change, tau = np.zeros(len(K)), 1.0
        change[S] = d
        if m <= 0 and delta > max(threshold, 1e-5):
            S, change = [*S, i], np.eye(len(K))[i]
        elif m > 0:
            excess = 1 - m - (delta / threshold if threshold else np.inf)
            tau = min((1 - m) / inside, 2 * excess / inside, 1 * (1 + (r is not None))) if plus and excess > 0 else 0
            tau /= 1 + (r is not None)
        alpha[0 if r is None else c] += tau * change * (1 if r is not None else 2 * c - 1)
        alpha[r if r is not None else slice(0, 0)] -= tau * change
    return np.array(scores), S, alpha


def published_metric(grams, y, w, alpha, metric_penalty, step, rounds, sparse=False, free=False):
    """Algorithm 1 of Huusari et al. (2018): g by (8) in the range of A, w by (10), A by (9) or by (12), shrunk by η."""
    n, A, found = len(y), np.eye(len(grams) * len(y)), []
    views = [slice(k, k + n) for k in range(0, len(A), n)]
    for _ in range(rounds + 1):
        M, (e, V) = stacked(grams, w), np.linalg.eigh(A)
        e, V = e[kept := np.abs(e) > 1e-12 * np.abs(e).max()], V[:, kept]
        g = V @ np.linalg.solve(V.T @ M.T @ M @ V + alpha * np.diag(1 / e), V.T @ M.T @ y)
        found.append((A, g, w))
        if free:
            Z = np.stack([K @ g[own] for K, own in zip(grams, views, strict=True)], axis=1)
            w = np.linalg.lstsq(Z, y, rcond=1e-9)[0]
        h = V @ (V.T @ g / e)  # A†g
        moved = step * alpha * np.outer(h, h)
        A = A + moved if sparse else (1 - 2 * step * metric_penalty) * A + moved
        for a, b in [(a, b) for k, a in enumerate(views) for b in views[k:]] if sparse else []:
            both = np.sqrt(np.sum(A[a, b] ** 2) * (1 if a == b else 2))
            A[a, b] *= max(1 - metric_penalty / both, 0) if both else 0
            A[b, a] = A[a, b].T
    return found


def learned_prior_norms(rows, codes, n_classes, p, threshold, step):
    """OMMP with learned prior norms: rows are tuples of views; return mistakes, V, factors, R and the potential."""
    T, K = (1 if n_classes == 2 else n_classes), len(rows[0])
    V, F, q = [[0 * z for z in rows[0]] for _ in range(T)], np.zeros((T, K)), np.ones(K)
    R, wrong, potential = 0.0, [], 0.0
    for x, c in zip(rows, codes, strict=True):
        dots = np.array([[v @ z for v, z in zip(vs, x, strict=True)] for vs in V])
        s, sign = (F * dots).sum(axis=1), 2 * c - 1
        r = None if T == 1 else max((t for t in range(T) if t != c), key=lambda t: s[t])
        margin, leads = (sign * s[0], sign * dots[0]) if T == 1 else (s[c] - s[r], dots[c] - dots[r])
        margin = 0.0 if abs(margin) < 1e-10 else margin
        wrong.append(margin <= 0)
        if margin <= threshold + 1e-12:
            size = np.sum([(z @ z) ** p for z in x]) ** (1 / p) * (1 if T == 1 else 2)
            tau = step(margin, size)
            for t, a in [(0, sign * tau)] if T == 1 else [(c, tau), (r, -tau)]:
                V[t] = [v + a * z for v, z in zip(V[t], x, strict=True)]
            N = np.array([[v @ v for v in vs] for vs in V])
            R, q = R + 2 * tau * margin + (2 * p - 1) * tau**2 * size, q + (leads > 1e-9)
            N = N + (R - np.sum(np.sum(N**p, axis=1) ** (1 / p))) * q / (T * np.sum(q**p) ** (1 / p))
            squared = np.sum(N**p, axis=1) ** (1 / p)
            F, potential = (N / squared[:, None]) ** (p - 1), squared.sum()
    return wrong, V, F, R, potential


def ranking(pairs, features, candidates):
    """Score all candidates, step where the true one does not win: mistakes, and the hypotheses w_0 .. w_T as dicts."""
    w, wrong, hypotheses = {}, [], [{}]
    for x, y in pairs:
        others = [t for t in candidates(x) if t != y]
        terms = {t: [w.get(name, 0.0) * value for name, value in features(x, t).items()] for t in [y, *others]}
        rival = max(others, key=lambda t: sum(terms[t]), default=None)
        size = sum(abs(z) for own in terms.values() for z in own)
        lead = np.inf if rival is None else sum(terms[y]) - sum(terms[rival])
        wrong.append(lead <= 1e-11 * size)
        for t, sign in ((y, 1.0), (rival, -1.0)) if wrong[-1] else ():
            for name, value in features(x, t).items():
                w[name] = w.get(name, 0.0) + sign * value
        hypotheses.append(dict(w))
    return np.array(wrong), hypotheses


def mean_weights(hypotheses):
    """The mean of hypotheses given as dicts."""
    names = {name for w in hypotheses for name in w}
    return {name: sum(w.get(name, 0.0) for w in hypotheses) / len(hypotheses) for name in names}


def ranking_votes(hypotheses, wrong, x, features, candidates):
    """The share of hypotheses from the first step on that rank a candidate first, the first among ties."""
    found = dict.fromkeys(candidates(x), 0)
    voters = [w for k, w in enumerate(hypotheses) if k and any(wrong[:k])]
    for w in voters:
        scores = {t: sum(w.get(n, 0.0) * v for n, v in features(x, t).items()) for t in found}
        best = max(scores.values())
        found[next(t for t, s in scores.items() if s >= best - 1e-9)] += 1
    return {t: count / max(len(voters), 1) for t, count in found.items()}


def vector_valued_observations(C, N, l):
    """C f(x_i) of the first l samples as a matrix over the values (v, i, q) of f, a row per (i, p)."""
    m, P, Q = C.shape
    whole = np.zeros((l, P, m, N, Q))
    for i, v in product(range(l), range(m)):
        whole[i, :, v, i] = C[v]
    return whole.reshape(l * P, m * N * Q)


def vector_valued_ridge(G, R, C, M, Y, alpha, penalty):
    """f at all samples, (m, N, Q), and ‖f‖², by the literal system (Minh, Bazzani and Murino 2016, Theorem 4).

    Targets that are NaN are not known.
    """
    m, _, Q = C.shape
    N, l = len(G) // m, (~np.isnan(Y)).any(axis=1).sum()
    known = ~np.isnan(Y.ravel())
    O, K = vector_valued_observations(C, N, len(Y))[known], np.kron(G, R)
    system = O.T @ O @ K + l * penalty * np.kron(M, np.eye(Q)) @ K + l * alpha * np.eye(len(K))
    a = np.linalg.solve(system, O.T @ Y.ravel()[known])
    return (K @ a).reshape(m, N, Q), a @ K @ a


def unbiased_hsic(K, L):
    """The mean of K_ij (L_ij + L_qr - 2 L_iq) over four different samples (Song et al. 2012, equation 3)."""
    places = list(permutations(range(len(K)), 4))
    return sum(K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q]) for i, j, q, r in places) / len(places)


def one_hot(values, levels):
    """1 where a value is the level, 0 where it is another one, NaN where it is missing."""
    return np.array([[np.nan if value is None else float(value == level) for level in levels] for value in values])


def scaled_by_views(grams, present):
    """The Gram matrices of each view's kernels, zero where the view is missing, in a sum of functions over the views.

    `grams` are lists by view; a row's functions are multiplied by the number of views over that of its views.
    """
    scale = present.shape[1] / present.sum(axis=1)
    return [[K * np.outer(scale * here, scale * here) for K in own] for own, here in zip(grams, present.T, strict=True)]


def weighted_area(positive, scores, weights):
    """The share of pairs of a positive and a negative sample, by weight, in which the positive has the higher score."""
    won = total = 0.0
    for i, j in product(np.flatnonzero(positive), np.flatnonzero(~positive)):
        total += weights[i] * weights[j]
        won += weights[i] * weights[j] * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
    return won / total


# -- consensus
def ridge_with_intercept(K, Y, s, penalty):
    """Coefficients a and intercept b of min Σ_i s_i ‖y_i - (Ka)_i - b‖² + penalty a'Ka: Ka + penalty a/s + b = y."""
    ones = np.ones((len(K), 1))
    system = np.block([[K + penalty * np.diag(1 / s), ones], [ones.T, np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return found[:-1], found[-1]


def left_out_predictions(K, Y, s, penalty, parts, K_new):
    """Predictions at all samples by refits without the part of each, and at new samples by each of the refits."""
    held, new = np.empty_like(Y), []
    for part in parts:
        rest = np.setdiff1d(np.arange(len(Y)), part)
        a, b = ridge_with_intercept(K[np.ix_(rest, rest)], Y[rest], s[rest], penalty)
        held[part] = K[np.ix_(part, rest)] @ a + b
        new.append(K_new[:, rest] @ a + b)
    return held, np.stack(new, axis=1)


def nested_predictions(grams, Y, s, units, g, penalties):
    """Predictions at g of a stack whose penalties and weights are chosen by refits without one more unit."""
    rest, root = np.setdiff1d(np.arange(len(Y)), g), np.sqrt(s)[:, None]
    parts = [np.flatnonzero(units[rest] == unit) for unit in np.unique(units[rest])]
    outside = [np.setdiff1d(np.arange(len(rest)), part) for part in parts]
    means = np.empty((len(rest), Y.shape[1]))
    for part, other in zip(parts, outside, strict=True):
        means[part] = np.average(Y[rest][other], axis=0, weights=s[rest][other])
    mean, A, new = np.average(Y[rest], axis=0, weights=s[rest]), [], []
    for K, grid in zip(grams, penalties, strict=True):
        inside = K[np.ix_(rest, rest)], Y[rest], s[rest]
        held = [left_out_predictions(*inside, penalty, parts, K[:1][:, rest])[0] for penalty in grid]
        best = int(np.argmin([np.sum((root[rest] * (Y[rest] - z)) ** 2) for z in held]))
        A.append((root[rest] * (held[best] - means)).ravel())
        a, b = ridge_with_intercept(*inside, grid[best])
        new.append(K[np.ix_(g, rest)] @ a + b - mean)
    beta = scipy.optimize.nnls(np.array(A).T, (root[rest] * (Y[rest] - means)).ravel())[0]
    return mean + np.einsum("knp,k->np", np.array(new), beta), beta


# -- support vector machines over features
def hinge_coordinates(T, S, D, upper, signs, sweeps):
    """α with min ½|Σ_i t_i (s_i ∘ α_i)'S|² - <D, α> in its box, one variable after the other, by the kernel."""
    K, Q_S, alpha = T @ T.T, S @ S.T, np.zeros(D.shape)
    for _ in range(sweeps):
        for i, k in product(range(len(D)), range(len(S))):
            slope = signs[i, k] * (K[i] @ (signs * alpha) @ Q_S[k]) - D[i, k]
            curvature = K[i, i] * Q_S[k, k]
            best = alpha[i, k] - slope / curvature if curvature > 0 else (upper[i, k] if slope < 0 else 0.0)
            alpha[i, k] = min(max(best, 0.0), upper[i, k])
    return alpha


# -- banded ridge
def banded_ridge(grams, y, s, train, x):
    """Return what kernel ridge with an intercept, trained on some rows, predicts at all; x is (weights, penalty)."""
    K = sum(weight * gram for weight, gram in zip(x[0], grams, strict=True))
    n = len(train)
    A = np.block([[K[np.ix_(train, train)] + x[1] * np.diag(1 / s[train]), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    c = np.linalg.solve(A, np.append(y[train], 0.0))
    return K[:, train] @ c[:-1] + c[-1]


def banded_errors(grams, y, s, draws, alphas, folds=None):
    """Return the weighted squared held-out errors of one output by refits, (draws, penalties); NaN is left out."""
    known = np.flatnonzero(~np.isnan(y))
    folds = [(np.setdiff1d(known, [i]), np.array([i])) for i in known] if folds is None else folds
    errors = np.zeros((len(draws), len(alphas)))
    for (d, weights), (k, alpha), (train, test) in product(enumerate(draws), enumerate(alphas), folds):
        train, test = np.intersect1d(train, known), np.intersect1d(test, known)
        predicted = banded_ridge(grams, y, s, train, (weights, alpha))[test]
        errors[d, k] += np.sum(s[test] * (y[test] - predicted) ** 2)
    return errors


# -- co-regularized least squares over features
def coregularized_features(rows, sizes, c, penalties, total, R=None):
    """Coefficients (q, P) of given features by the normal equations of all outputs together; total is l."""
    Phi, present, s, u, Y = rows
    alpha, agreement, _ = (total * penalty for penalty in penalties)
    view, P = np.repeat(np.arange(len(sizes)), sizes), Y.shape[1]
    nu = np.abs(c).sum() / (present @ np.abs(c))
    G, A = (nu[:, None] * Phi * np.repeat(c, sizes)), np.zeros((len(view), len(view)))
    for v, w in product(range(len(sizes)), repeat=2):
        if v < w:  # (f_v - f_w)² where both are present
            D = Phi * ((view == v) * 1.0 - (view == w)) * (np.sqrt(s) * present[:, v] * present[:, w])[:, None]
            A += agreement * D.T @ D
    inverse = np.eye(P) if R is None else np.linalg.inv(R)
    whole = np.kron(G.T @ (u[:, None] * G) + A, np.eye(P)) + alpha * np.kron(np.eye(len(view)), inverse)
    return np.linalg.solve(whole, (G.T @ (u[:, None] * Y)).ravel()).reshape(-1, P), G


def shared_metric_residuals(M, Y, alpha, metric_penalty):
    """B of max_B 2<B, Y> - ‖B‖² - μ‖B'MM'B‖², by Newton's method on all entries with steps that are halved."""
    kappa = 3 * np.cbrt(metric_penalty) * np.cbrt(alpha / 2) ** 2
    _, size, rows = np.linalg.svd(Y, full_matrices=False)
    rows = rows[size > 1e-13 * size[0]]  # entries of B outside of the rows of Y are zero
    K, Z, mu = M @ M.T, Y @ rows.T, 27 / (16 * kappa**3)
    (n, P), B = Z.shape, np.zeros(Z.shape)
    loss = lambda B: np.sum(B**2) - 2 * np.sum(B * Z) + mu * np.sum((B.T @ K @ B) ** 2)  # noqa: E731
    for _ in range(200):
        KB, H = K @ B, B.T @ K @ B
        slope = 2 * B - 2 * Z + 4 * mu * KB @ H
        curve = 2 * np.eye(n * P) + 4 * mu * (np.kron(K, H) + np.kron(KB @ B.T @ K, np.eye(P)))
        curve += 4 * mu * np.einsum("il,kj->ijkl", KB, KB).reshape(n * P, n * P)
        step, t = np.linalg.solve(curve, slope.ravel()).reshape(n, P), 1.0
        while loss(B - t * step) > loss(B) and t > 1e-8:
            t /= 2
        B = B - t * step
    return B @ rows


# -- streams
def running_scores(X, *, center=True):
    """Standard scores of each value among those of its column up to its row, without NaN; 0 without variance."""
    Z = np.full(X.shape, np.nan)
    for t, row in enumerate(X):
        for j, x in enumerate(row):
            past = X[: t + 1, j][~np.isnan(X[: t + 1, j])]
            if not np.isnan(x):
                Z[t, j] = (x - past.mean() * center) / past.std() if past.std() > 0 else 0.0
    return Z


def running_means(X):
    """The table with each NaN replaced by the mean of the values above it; 0 where there are none."""
    Z = X.copy()
    for t, j in np.argwhere(np.isnan(X)):
        past = X[:t, j][~np.isnan(X[:t, j])]
        Z[t, j] = past.mean() if len(past) else 0.0
    return Z


def running_tfidf(counts):
    """Weights of counts with the frequencies of the rows up to each one, of norm 1."""
    Z = np.zeros(counts.shape)
    for t, row in enumerate(counts):
        df = (counts[: t + 1] > 0).sum(axis=0)
        Z[t] = row * (np.log((2 + t) / (1 + df)) + 1)
        Z[t] /= max(np.sqrt((Z[t] ** 2).sum()), 1e-300)
    return Z


def running_calibration(scores, codes, weights):
    """Probabilities before each sample: Newton steps of the log loss on slopes and biases, past samples fade.

    The first 4,000 samples are learned, then every 16th.
    """
    T, out, squares, total, memory = scores.shape[1], [], 0.0, 0.0, np.full(3, 2.0)
    theta, H = np.array([[1e-3, 0.0]] * 2), np.zeros((2, 2, 2))
    for t, (s, c, w) in enumerate(zip(scores, codes, weights, strict=True)):
        z = (s if T == 1 else s - s.max()) / (np.sqrt(squares / total) if squares > 0 else 1.0)
        z, side = z / np.sqrt(1 + z**2 / 9), int(T == 1 and s[0] > 0)
        x, kept = np.array([abs(z[0]), 1.0]), 1 - 1 / memory
        logits = np.eye(2)[side] * (theta[side] @ x) if T == 1 else theta[0, 0] * z
        P = np.exp(logits - logits.max())
        out.append(P := P / P.sum())
        if t >= 4000 and t % 16:
            continue
        squares, total = kept[2] * squares + w * np.mean(s**2), kept[2] * total + w
        if T == 1:
            H[side] = kept[side] * H[side] + w * max(P[0] * P[1], 1e-3) * np.outer(x, x)
            theta[side] += np.linalg.solve(H[side] + np.eye(2), w * ((c == side) - P[side]) * x)
        else:
            H[0, 0, 0] = kept[0] * H[0, 0, 0] + w * max(P @ z**2 - (P @ z) ** 2, 1e-3)
            theta[0, 0] += w * (z[c] - P @ z) / (H[0, 0, 0] + 1)
        theta, memory[[side, 2]] = np.maximum(theta, [1e-3, 0.0]), np.minimum(memory[[side, 2]] + 0.25, 1250)
    return np.array(out)


def adwin(values, delta):
    """Adaptive windows (Bifet and Gavaldà 2007) with all values kept in buckets of 1, 2, 4, ... values."""
    buckets, changes = [], []
    for t, value in enumerate(values):
        buckets.append([float(value)])
        size = 1
        while [len(b) for b in buckets].count(size) > 5:
            k = [len(b) for b in buckets].index(size)
            buckets[k : k + 2] = [buckets[k] + buckets[k + 1]]
            size *= 2
        dropped, n = [], (t + 1) % 32 == 0 and _older_part(buckets, delta)
        while n:
            while n:
                n -= len(buckets[0])
                dropped += buckets.pop(0)
            n = _older_part(buckets, delta)
        if dropped:
            changes.append((t, np.mean(dropped), np.mean(np.concatenate(buckets))))
    return changes


def _older_part(buckets, delta):
    w, ratios = np.concatenate(buckets), {0: 1.0}
    for n in np.cumsum([len(b) for b in buckets]):
        if 5 <= n <= len(w) - 5 and len(w) > 10:
            m, log = 1 / n + 1 / (len(w) - n), np.log(2 * np.log(len(w)) / delta)
            bound = np.sqrt(2 * m * np.var(w) * log) + 2 / 3 * m * log
            ratios[n] = abs(np.mean(w[:n]) - np.mean(w[n:])) / bound
    return max(ratios, key=ratios.get)
