"""Probabilities of classes that follow a stream: how sure a score is, learned one sample at a time."""

import numpy as np

from .._jit import jit

_MEMORY = 1250.0  # learned samples that decide, at most; before, the last quarter: estimators change fast at first
REACH = 3.0  # multiples of σ that a score counts for, at most: a few scores of the first samples are very large
_LEAST = 1e-3  # smallest slope
_DENSE = 4000  # first samples of a stream, which are all learned; later ones, every 16th
_EVERY = 16
_PRIOR = 1.0  # curvature besides that of the samples: it does not fade, so no step is ever too long


class Calibration:
    """Probabilities of classes that agree with the decisions, and follow the stream.

    With one output s, a decision for the second class, s > 0, is correct with probability sigmoid(a s/σ + b), a > 0 and
    b >= 0; decisions for the first class have their own (a, b). With several outputs, p = softmax(a s/σ). σ² is the
    running mean of the squared scores. In place of z = s/σ stands z/√(1 + z²/9), and leads over the best output are
    taken likewise. (a, b) take a Newton step of the log loss, with the curvature of the samples so far, at each of the
    first 4,000 samples and at every 16th later one. Older ones fade, so that the last quarter of the samples decides,
    or the last 20,000.
    """

    def __init__(self, n_outputs: int):
        sides = 2 if n_outputs == 1 else 1
        self.n_outputs = n_outputs
        self.slopes = np.full(sides, _LEAST)
        self.biases = np.zeros(sides)  # of one output
        self.curvature = np.zeros((sides, 3))  # of slope, slope and bias, bias
        self.squares = np.zeros(2)  # faded Σ s² and its weight
        self.forget()

    def forget(self) -> None:
        """Follow the next samples as fast as the first ones."""
        self.seen = np.zeros(1)  # samples since the start
        self.memory = np.full(len(self.slopes) + 1, 2.0)  # samples that decide on each curvature, and on σ

    def copy(self) -> "Calibration":
        """Return a copy that further learning does not change."""
        other = Calibration(self.n_outputs)
        for name in ("slopes", "biases", "curvature", "squares", "memory", "seen"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def remap(self, n_outputs: int) -> None:
        """Go on with more outputs; the lead of one of two classes over the other becomes a lead of two outputs."""
        if self.n_outputs == 1:
            self.slopes, self.biases = self.slopes.mean(keepdims=True) / 2, np.zeros(1)
            self.curvature = self.curvature.mean(axis=0, keepdims=True)
            self.memory = self.memory[1:]
        self.n_outputs = n_outputs

    def learn(
        self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, slopes: bool, reported: bool = True
    ) -> np.ndarray | None:
        """Learn samples, only σ without `slopes`; return probabilities by class before each if they are reported."""
        if not reported and len(codes) == 1 and not _learns(self.seen[0]):
            self.seen += 1
            return None
        probabilities = np.empty((len(codes) if reported else 0, max(self.n_outputs, 2)))
        state = (self.slopes, self.biases, self.curvature, self.squares, self.memory, self.seen)
        one_pass = _binary_pass if self.n_outputs == 1 else _softmax_pass
        one_pass(np.ascontiguousarray(scores), codes, weights, state, slopes, probabilities)
        return probabilities if reported else None

    def spread(self) -> float:
        """Return σ, by which scores are divided."""
        return float(_spread(self.squares))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities by class of shape (n, n_classes); two classes have one score."""
        sigma = _spread(self.squares)
        if self.n_outputs == 1:
            side = (scores[:, 0] > 0).astype(int)
            sure = self.slopes[side] * _bounded(np.abs(scores[:, 0]) / sigma) + self.biases[side]
            logits = np.column_stack([np.where(side == 0, sure, 0.0), np.where(side == 1, sure, 0.0)])
        else:
            logits = self.slopes[0] * _bounded((scores - scores.max(axis=1, keepdims=True)) / sigma)
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))


# -- compiled passes
@jit()
def _learns(seen):  # type: ignore[no-untyped-def]
    """Tell whether the next sample is learned."""
    return seen < _DENSE or seen % _EVERY == 0


@jit()
def _spread(squares):  # type: ignore[no-untyped-def]
    """Return σ, 1 before the first score other than 0."""
    return np.sqrt(squares[0] / squares[1]) if squares[0] > 0 else 1.0


@jit()
def _bounded(z):  # type: ignore[no-untyped-def]
    """Return scores in units of σ, within ±REACH."""
    return z / np.sqrt(1 + (z / REACH) ** 2)


@jit()
def _fading(memory, k):  # type: ignore[no-untyped-def]
    """Return the weight that the past keeps, and let the memory grow."""
    kept = 1 - 1 / memory[k]
    memory[k] = min(memory[k] + 0.25, _MEMORY)
    return kept


@jit()
def _follow(squares, square, weight, memory):  # type: ignore[no-untyped-def]
    kept = _fading(memory, len(memory) - 1)
    squares[0] = kept * squares[0] + weight * square
    squares[1] = kept * squares[1] + weight


@jit()
def _binary_pass(scores, codes, weights, state, slopes, out):  # type: ignore[no-untyped-def]
    """Learn how often decisions for each of two classes are correct; fill the probabilities before each sample."""
    a, b, curvature, squares, memory, seen = state
    for i in range(len(codes)):
        learned = _learns(seen[0])
        seen[0] += 1
        if not (learned or len(out)):
            continue
        z, side = _bounded(abs(scores[i, 0]) / _spread(squares)), int(scores[i, 0] > 0)
        p = 1 / (1 + np.exp(-(a[side] * z + b[side])))  # that the decision is correct
        if len(out):
            out[i, side], out[i, 1 - side] = p, 1 - p
        if not learned:
            continue
        _follow(squares, scores[i, 0] ** 2, weights[i], memory)
        if not slopes:
            continue
        kept, curve = _fading(memory, side), weights[i] * max(p * (1 - p), 1e-3)  # a flat loss makes no long steps
        H = curvature[side]
        H[0] = kept * H[0] + curve * z * z
        H[1] = kept * H[1] + curve * z
        H[2] = kept * H[2] + curve
        first, second, g = H[0] + _PRIOR, H[2] + _PRIOR, weights[i] * ((codes[i] == side) - p)
        det = first * second - H[1] * H[1]
        a[side] = max(a[side] + g * (second * z - H[1]) / det, _LEAST)  # a larger score is always more probable
        b[side] = max(b[side] + g * (first - H[1] * z) / det, 0.0)  # the decision is at least as probable as the other


@jit()
def _softmax_pass(scores, codes, weights, state, slopes, out):  # type: ignore[no-untyped-def]
    """Learn the slope of several outputs by Newton steps; fill the probabilities before each sample."""
    a, _, curvature, squares, memory, seen = state
    T, likely = scores.shape[1], np.empty(scores.shape[1])
    for i in range(len(codes)):
        learned = _learns(seen[0])
        seen[0] += 1
        if not (learned or len(out)):
            continue
        sigma, top, total, square, mean, second = _spread(squares), -np.inf, 0.0, 0.0, 0.0, 0.0
        for t in range(T):
            top = max(top, scores[i, t])
            square += scores[i, t] ** 2 / T
        for t in range(T):
            likely[t] = np.exp(a[0] * _bounded((scores[i, t] - top) / sigma))
            total += likely[t]
        for t in range(T):
            likely[t] /= total
            z = _bounded((scores[i, t] - top) / sigma)
            mean += likely[t] * z
            second += likely[t] * z * z
        if len(out):
            out[i] = likely
        if not learned:
            continue
        _follow(squares, square, weights[i], memory)
        if slopes:
            H, z = curvature[0], _bounded((scores[i, codes[i]] - top) / sigma)
            H[0] = _fading(memory, 0) * H[0] + weights[i] * max(second - mean**2, 1e-3)
            a[0] = max(a[0] + weights[i] * (z - mean) / (H[0] + _PRIOR), _LEAST)
