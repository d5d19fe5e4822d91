"""Streams of samples, random and adversarial: mistakes and losses are counted again."""

import warnings
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from _claims import ROUNDING, fitted
from consilience.kernels import RBF


class Counted(NamedTuple):
    """Mistakes or losses of a stream, counted again, and what the certificate says."""

    counted: float  # predictions that were wrong, or their losses, before each sample was learned
    printed: float
    bound: float
    equal: bool  # whether both counts are the same; a score of zero is a mistake, whatever is predicted
    status: str = "streamed"
    found: bool = True

    @property
    def misprint(self) -> float:
        """How far the printed count is from ours, relative to it."""
        off = abs(self.printed - self.counted) if self.equal else max(self.counted - self.printed, 0.0)
        return off / max(self.counted, 1e-300)

    @property
    def violation(self) -> float:
        """How far the count is above the bound, relative to it."""
        return max(self.printed - self.bound, 0.0) / max(self.bound, 1e-300)

    @property
    def holds(self) -> bool:
        """Whether both are within rounding."""
        return bool(self.misprint <= ROUNDING and self.violation <= ROUNDING)


def _rows(rng: np.random.Generator, kind: str, n: int) -> dict[str, np.ndarray]:
    """Return two views: random, on axes, or the same few rows again and again."""
    width = int(rng.integers(1, 5))
    if kind == "axes":
        rows = [np.eye(n)[rng.permutation(n)] for _ in "ab"]
    elif kind == "repeated":
        some = rng.integers(3, size=n)
        rows = [rng.normal(size=(3, width))[some] for _ in "ab"]
    else:
        rows = [rng.normal(size=(n, width)) for _ in "ab"]
    return dict(zip("ab", rows, strict=True))


def _online(rng: np.random.Generator) -> Any:
    p = float(rng.uniform(1, 6))
    kernel = "linear" if rng.random() < 0.6 else RBF(10.0 ** rng.uniform(-2, 0.5))
    C = float(10.0 ** rng.uniform(-2, 2))
    variant = str(rng.choice(["PA", "PA-I", "PA-II"]))
    known = [
        cs.OnlinePerceptron(max(2.0, p)), cs.KernelPerceptron(RBF(0.3)), cs.MatrixPerceptron(kernel, p=p),
        cs.OrthogonalPerceptron(kernel, p=p), cs.OrthogonalPerceptron(kernel, p=p, margin=0.2, eta0=0.5),
        cs.OrthogonalPerceptron(kernel, p=p, variant="passive-aggressive", C=C),
        cs.PassiveAggressive(kernel, variant=variant, C=C), cs.OrthogonalPerceptron(kernel, p=p, prior_norms=0.1),
    ]  # fmt: skip
    return known[rng.integers(len(known))].set_params(average=False)


def mistakes(rng: np.random.Generator) -> Counted:
    """Mistakes of online estimators on random, separable, repeated and adversarial streams."""
    n, T = int(rng.integers(8, 40)), int(rng.integers(2, 4))
    kind = str(rng.choice(["random", "separable", "axes", "repeated"]))
    X, against = _rows(rng, kind, n), rng.random() < 0.4
    truth = np.hstack(list(X.values())) @ rng.normal(size=(2 * X["a"].shape[1], T))
    y = truth.argmax(axis=1) if kind == "separable" else rng.integers(T, size=n)
    model, wrong = _online(rng), 0
    for i in range(n):
        row = {name: block[i : i + 1] for name, block in X.items()}
        if i:
            guess = int(model.predict(row)[0])
            if against:  # the adversary chooses another class
                y[i] = (guess + int(rng.integers(1, T))) % T
            wrong += guess != y[i]
        model.partial_fit(row, y[i : i + 1], classes=np.arange(T))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proof = model.certificate(X, y)
    assert proof.n_mistakes == model.n_mistakes_
    assert proof.bound is not None, f"{model} has no bound"
    return Counted(float(wrong), float(proof.n_mistakes), float(proof.bound), equal=False)


def losses(rng: np.random.Generator) -> Counted:
    """Losses of passive-aggressive regression on random and adversarial streams."""
    n, C = int(rng.integers(8, 40)), float(10.0 ** rng.uniform(-2, 2))
    X, against = _rows(rng, str(rng.choice(["random", "axes", "repeated"])), n), rng.random() < 0.4
    kernel = "linear" if rng.random() < 0.6 else RBF(0.3)
    kinds = ["epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "squared"]
    loss, epsilon = str(rng.choice(kinds)), float(rng.choice([0.05, 0.3]))
    model = cs.PassiveAggressiveRegressor(kernel, loss=loss, epsilon=epsilon, C=C, average=False)
    y, total = X["a"][:, 0] + 0.3 * rng.normal(size=n), 0.0
    for i in range(n):
        row = {name: block[i : i + 1] for name, block in X.items()}
        guess = float(model.predict(row)[0]) if i else 0.0
        if against:  # the adversary stays away from the prediction
            y[i] = guess + rng.choice([-1.0, 1.0]) * rng.uniform(1, 2)
        off = max(abs(y[i] - guess) - (epsilon if "insensitive" in loss else 0.0), 0.0)
        total += off**2 if "squared" in loss else off
        model.partial_fit(row, y[i : i + 1])
    proof = model.certificate(X, y)
    assert proof.bound is not None, f"{model} has no bound"
    return Counted(total, float(proof.total_loss), float(proof.bound), equal=True)


def vector_updates(rng: np.random.Generator) -> Counted | None:
    """Updates of the vector perceptron over several passes."""
    n, T = int(rng.integers(8, 30)), int(rng.integers(2, 4))
    X = _rows(rng, "random", n)
    y = rng.integers(T, size=n)
    y[:T] = np.arange(T)
    X["a"] = X["a"] + 3 * y[:, None]
    model = cs.VectorPerceptron(
        RBF(10.0 ** rng.uniform(-2, 1)), eta0=float(10.0 ** rng.uniform(-1, 1)), max_iter=50, random_state=0
    )
    model = fitted(model, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proof = model.certificate(X, y)
    if proof.bound is None:  # no operator has a margin
        return None
    reached = proof.margin_bound is None or proof.margin >= proof.margin_bound * (1 - ROUNDING)
    assert reached, f"margin {proof.margin}, at least {proof.margin_bound} is claimed"
    return Counted(float(model.n_updates_), float(proof.n_updates), float(proof.bound), equal=True)
