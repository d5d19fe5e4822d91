"""Drift of a stream: a window of values that shrinks when their mean changes."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params

from .._jit import jit
from ._stream_states import restored_array

__all__ = ["ADWIN", "Change"]

_LEVELS = 48  # bucket sizes 1, 2, 4, ...: more samples than any stream has
_MOST = 5  # buckets of each size
_CLOCK = 32  # values between two tests
_GRACE = 10  # values before the first test
_LEAST = 5  # values in each part of the window


class Change(NamedTuple):
    """A change of the mean that `ADWIN` found.

    Parameters
    ----------
    position : int
        Position among the values given to `update` at which the change was found.
    before : float
        Mean of the values that were dropped.
    after : float
        Mean of the values that are left.

    Examples
    --------
    >>> from consilience.evaluation.drift import Change
    >>> Change(99, 0.1, 0.4).after
    0.4
    """

    position: int
    before: float
    after: float


class ADWIN:
    """Adaptive window over values between 0 and 1, which shrinks when their mean changes (Bifet and Gavaldà 2007).

    The window W holds the latest values. Every 32 values, all divisions of W into an older part of n₀ values and a
    newer part of n₁ values are tested. If the means of some two parts differ by more than

        ε = √(2/m · σ² · ln(2 ln|W| / δ)) + 2/(3m) · ln(2 ln|W| / δ),   1/m = 1/n₀ + 1/n₁,

    the older part is dropped, and W is tested again. Of several such divisions, that with the largest ratio of
    difference to ε counts. (The paper drops the oldest values one by one, which finds a change at the same moment, but
    often several times.) σ² is the variance of W. If values are independent and their mean is constant, a test
    drops values with a probability of about δ at most. Values that resemble the ones before them cause more false
    alarms. Values are kept as sums of 1, 2, 4, ... values, at most five of each size, so memory and time grow with the
    logarithm of |W|.

    Parameters
    ----------
    delta : float, default=0.002
        Probability δ of a false alarm at each test, for independent values.

    Examples
    --------
    >>> import numpy as np
    >>> import consilience as cs
    >>> rng = np.random.default_rng(0)
    >>> values = np.r_[rng.random(1000) < 0.1, rng.random(500) < 0.4]
    >>> (change,) = cs.ADWIN().update(values)
    >>> bool(1000 < change.position < 1150), round(change.before, 1), round(change.after, 1)
    (True, 0.1, 0.4)
    """

    @validate_params({"self": "no_validation", "delta": [Interval(Real, 0, 1, closed="neither")]},
                     prefer_skip_nested_validation=True)  # fmt: skip
    def __init__(self, delta: float = 0.002):
        self.delta = float(delta)
        self._sums = np.zeros((_LEVELS, _MOST + 1))
        self._spreads = np.zeros((_LEVELS, _MOST + 1))  # sums of squared deviations in each bucket
        self._filled = np.zeros(_LEVELS, dtype=np.int64)  # buckets of each size, the oldest first
        self._counts = np.zeros(2, dtype=np.int64)  # values so far, and in the window
        self._totals = np.zeros(2)  # sum, and sum of squared deviations, of the window

    @property
    def width(self) -> int:
        """Number of values in the window."""
        return int(self._counts[1])

    @property
    def mean(self) -> float:
        """Mean of the values in the window; NaN before the first."""
        return float(self._totals[0] / self._counts[1]) if self._counts[1] else float("nan")

    def update(self, values: Any) -> list[Change]:
        """Add values in order.

        Parameters
        ----------
        values : array-like of shape (n,)
            Values between 0 and 1.

        Returns
        -------
        list of Change
            The changes found, of either sign, in order.
        """
        given = np.ascontiguousarray(values, dtype=np.float64).ravel()
        if len(given) and not (given.min() >= 0 and given.max() <= 1):
            raise ValueError("ADWIN takes values between 0 and 1. Divide them by their range first.")
        changes, start, found = [], 0, np.zeros(2)
        while start < len(given):
            stop = _add_values(
                given, start, self._sums, self._spreads, self._filled, self._counts, self._totals, self.delta, found
            )
            if stop < 0:
                break
            changes.append(Change(stop, float(found[0]), float(found[1])))
            start = stop + 1
        return changes

    def state(self) -> dict[str, Any]:
        """Return the window as a dict of arrays."""
        return {
            "sums": self._sums.copy(), "spreads": self._spreads.copy(), "filled": self._filled.copy(),
            "counts": self._counts.copy(), "totals": self._totals.copy(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a window that `state` returned; a ValueError if it cannot be one.

        Parameters
        ----------
        state : dict
            What `state` returned.
        """
        new = {name: restored_array(state, name, getattr(self, f"_{name}")) for name in self.state()}
        sizes = 2 ** np.arange(_LEVELS)
        filled, width = new["filled"], int(new["counts"][1])
        if filled.min() < 0 or filled.max() > _MOST or int((filled * sizes).sum()) != width or new["counts"][0] < width:
            raise ValueError("The state of ADWIN is damaged: its buckets do not fit its window.")
        for name, value in new.items():
            setattr(self, f"_{name}", value)


@jit()
def _insert(value, sums, spreads, filled):  # type: ignore[no-untyped-def]
    """Add a bucket of one value; merge the two oldest buckets of a size where there are too many."""
    sums[0, filled[0]], spreads[0, filled[0]] = value, 0.0
    filled[0] += 1
    level, size = 0, 1.0
    while filled[level] > _MOST and level + 1 < _LEVELS:
        gap = (sums[level, 0] - sums[level, 1]) / size
        at = filled[level + 1]
        sums[level + 1, at] = sums[level, 0] + sums[level, 1]
        spreads[level + 1, at] = spreads[level, 0] + spreads[level, 1] + gap * gap * size / 2.0
        filled[level + 1] += 1
        filled[level] -= 2
        for k in range(filled[level]):
            sums[level, k], spreads[level, k] = sums[level, k + 2], spreads[level, k + 2]
        level += 1
        size *= 2.0


@jit()
def _older_part(sums, filled, counts, totals, delta):  # type: ignore[no-untyped-def]
    """Return the number of values in the older part of the division whose means differ most; 0 if none differ."""
    width, total = counts[1], totals[0]
    variance = max(totals[1], 0.0) / width
    log = np.log(2.0 * np.log(width) / delta)
    n, s, found, largest = 0, 0.0, 0, 1.0
    for level in range(_LEVELS - 1, -1, -1):
        for k in range(filled[level]):
            n += 1 << level
            s += sums[level, k]
            rest = width - n
            if n >= _LEAST and rest >= _LEAST:
                shares = 1.0 / n + 1.0 / rest
                bound = np.sqrt(2.0 * shares * variance * log) + 2.0 / 3.0 * shares * log
                ratio = abs(s / n - (total - s) / rest) / bound
                if ratio > largest:
                    found, largest = n, ratio
    return found


@jit()
def _drop_oldest(sums, spreads, filled, counts, totals):  # type: ignore[no-untyped-def]
    """Drop the oldest bucket; return its number of values and their sum."""
    level = _LEVELS - 1
    while filled[level] == 0:
        level -= 1
    size, gone = 1 << level, sums[level, 0]
    filled[level] -= 1
    for k in range(filled[level]):
        sums[level, k], spreads[level, k] = sums[level, k + 1], spreads[level, k + 1]
    counts[1] -= size
    totals[0] = totals[1] = 0.0
    for own in range(_LEVELS):  # again from the buckets, so that rounding does not add up
        for k in range(filled[own]):
            totals[0] += sums[own, k]
    for own in range(_LEVELS):
        for k in range(filled[own]):
            gap = sums[own, k] / (1 << own) - totals[0] / counts[1]
            totals[1] += spreads[own, k] + (1 << own) * gap * gap
    return size, gone


@jit()
def _add_values(values, start, sums, spreads, filled, counts, totals, delta, found):  # type: ignore[no-untyped-def]
    """Add values up to the first change; return its position, or -1 if there is none."""
    for i in range(start, len(values)):
        _insert(values[i], sums, spreads, filled)
        before = totals[0] / counts[1] if counts[1] > 0 else values[i]
        counts[0] += 1
        counts[1] += 1
        totals[0] += values[i]
        totals[1] += (values[i] - before) * (values[i] - totals[0] / counts[1])
        if counts[0] % _CLOCK or counts[1] <= _GRACE:
            continue
        n, s, part = 0, 0.0, _older_part(sums, filled, counts, totals, delta)
        while part > 0:
            goal = n + part
            while n < goal:
                size, gone = _drop_oldest(sums, spreads, filled, counts, totals)
                n += size
                s += gone
            part = _older_part(sums, filled, counts, totals, delta) if counts[1] > _GRACE else 0
        if n > 0:
            found[0], found[1] = s / n, totals[0] / counts[1]
            return i
    return -1
