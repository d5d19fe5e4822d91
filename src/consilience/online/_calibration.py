"""Probabilities of classes that follow a stream: a slope and biases on the scores, learned one sample at a time."""

import numpy as np

from .._jit import jit
from ._machine import Sources

_FADING = 0.9998  # weight of the past after each sample: about the last 5,000 samples decide
_PRIOR = 1.0  # curvature besides that of the samples: it does not fade, so no step is ever too long


class Calibration:
    """p = softmax(a s/σ + b) for scores s, and for one output p = sigmoid(a s/σ + b) of the second class.

    σ² is the running mean of the squared scores. (a, b) take a Newton step of the log loss at each sample, with the
    curvature of the samples so far; older ones fade. The curvature between slope and bias is kept for one output.
    """

    def __init__(self, n_outputs: int):
        self.slope = np.zeros(1)
        self.biases = np.zeros(n_outputs)
        # curvature of slope and biases; for one output the three entries of a symmetric 2 x 2 matrix
        self.curvature = np.zeros(1 + n_outputs if n_outputs > 1 else 3)
        self.squares = np.zeros(2)  # faded Σ s² and its weight

    def copy(self) -> "Calibration":
        """Return a copy that further learning does not change."""
        other = Calibration(len(self.biases))
        for name in ("slope", "biases", "curvature", "squares"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def remap(self, sources: Sources) -> None:
        """Replace the outputs; two classes share the bias of their one output when a third joins."""
        paired = len(self.biases) == 1
        share = 0.5 if paired else 1.0
        biases, spread = self.biases, self.curvature[2:] if paired else self.curvature[1:]
        self.biases = np.array([share * np.sign(f) * biases[s] if s >= 0 else 0.0 for s, f in sources])
        own = [spread[s] if s >= 0 else 0.0 for s, _ in sources]
        self.curvature = np.array([self.curvature[0], *own])

    def learn(self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, slopes: bool) -> np.ndarray:
        """Return probabilities by class before each sample is learned; without `slopes`, σ alone follows."""
        T = len(self.biases)
        probabilities = np.empty((len(codes), max(T, 2)))
        state = (self.slope, self.biases, self.curvature, self.squares)
        one_pass = _binary_pass if T == 1 else _softmax_pass
        one_pass(np.ascontiguousarray(scores), codes, weights, *state, slopes, probabilities)
        return probabilities

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities by class of shape (n, n_classes); two classes have one score."""
        scaled = self.slope[0] * scores / _spread(self.squares)
        logits = scaled + self.biases
        if len(self.biases) == 1:
            logits = np.column_stack([np.zeros(len(scores)), logits[:, 0]])
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))


# -- compiled passes
@jit()
def _spread(squares):  # type: ignore[no-untyped-def]
    """Return σ, 1 before the first score other than 0."""
    return np.sqrt(squares[0] / squares[1]) if squares[0] > 0 else 1.0


@jit()
def _follow(squares, square, weight):  # type: ignore[no-untyped-def]
    squares[0] = _FADING * squares[0] + weight * square
    squares[1] = _FADING * squares[1] + weight


@jit()
def _binary_pass(scores, codes, weights, slope, biases, H, squares, slopes, out):  # type: ignore[no-untyped-def]
    """Learn slope and bias of one output by Newton steps; fill the probabilities before each."""
    for i in range(len(codes)):
        z = scores[i, 0] / _spread(squares)
        logit = slope[0] * z + biases[0]
        p = 1 / (1 + np.exp(-logit)) if logit >= 0 else np.exp(logit) / (1 + np.exp(logit))
        out[i, 0], out[i, 1] = 1 - p, p
        _follow(squares, scores[i, 0] ** 2, weights[i])
        if not slopes:
            continue
        curve = weights[i] * max(p * (1 - p), 1e-3)  # a flat loss does not make long steps
        H[0] = _FADING * H[0] + curve * z * z
        H[1] = _FADING * H[1] + curve * z
        H[2] = _FADING * H[2] + curve
        g = weights[i] * ((codes[i] == 1) - p)
        first, second = H[0] + _PRIOR, H[2] + _PRIOR
        det = first * second - H[1] * H[1]
        slope[0] = max(slope[0] + g * (second * z - H[1]) / det, 0.0)  # a larger score is never less probable
        biases[0] += g * (first - H[1] * z) / det


@jit()
def _softmax_pass(scores, codes, weights, slope, biases, H, squares, slopes, out):  # type: ignore[no-untyped-def]
    """Learn the slope and a bias for each output by diagonal Newton steps; fill the probabilities before each."""
    T = scores.shape[1]
    for i in range(len(codes)):
        sigma, top, total, square = _spread(squares), -np.inf, 0.0, 0.0
        for t in range(T):
            out[i, t] = slope[0] * scores[i, t] / sigma + biases[t]
            top = max(top, out[i, t])
            square += scores[i, t] ** 2 / T
        for t in range(T):
            out[i, t] = np.exp(out[i, t] - top)
            total += out[i, t]
        mean, second = 0.0, 0.0
        for t in range(T):
            out[i, t] /= total
            mean += out[i, t] * scores[i, t] / sigma
            second += out[i, t] * (scores[i, t] / sigma) ** 2
        _follow(squares, square, weights[i])
        if not slopes:
            continue
        H[0] = _FADING * H[0] + weights[i] * max(second - mean**2, 1e-3)
        slope[0] = max(slope[0] + 0.5 * weights[i] * (scores[i, codes[i]] / sigma - mean) / (H[0] + _PRIOR), 0.0)
        for t in range(T):
            p = out[i, t]
            H[1 + t] = _FADING * H[1 + t] + weights[i] * max(p * (1 - p), 1e-3)
            biases[t] += 0.5 * weights[i] * ((t == codes[i]) - p) / (H[1 + t] + _PRIOR)
