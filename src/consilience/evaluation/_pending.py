"""Samples whose labels come later: predicted at once, kept, and learned when the label comes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..views.container import Views


class Waiting(NamedTuple):
    """A sample that waits for its label: its row in the stream, its views, and the prediction made at first sight."""

    row: int
    X: Views
    predicted: Any
    probabilities: dict[Any, float] | None


class PendingLabels:
    """At most `most` samples by name; beyond that, the oldest is dropped and counted."""

    def __init__(self, most: int):
        self.most, self.n_dropped = most, 0
        self._waiting: dict[Any, Waiting] = {}  # in the order in which they came

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: Any) -> bool:
        return name in self._waiting

    def add(self, name: Any, sample: Waiting) -> None:
        """Keep a sample; one that waits already stays as it is."""
        if name in self._waiting:
            return
        self._waiting[name] = sample
        if len(self._waiting) > self.most:
            del self._waiting[next(iter(self._waiting))]
            self.n_dropped += 1

    def take(self, name: Any) -> Waiting:
        """Return and remove a sample."""
        return self._waiting.pop(name)

    def state(self) -> dict[str, Any]:
        """Return the samples as a dict of lists, with their views stacked."""
        kept = list(self._waiting.values())
        return {
            "names": list(self._waiting), "rows": [own.row for own in kept],
            "X": Views.concat([own.X for own in kept]) if kept else None,
            "predicted": [own.predicted for own in kept],
            "classes": [None if own.probabilities is None else list(own.probabilities) for own in kept],
            "probabilities": [None if (p := own.probabilities) is None else np.array([*p.values()]) for own in kept],
            "n_dropped": self.n_dropped,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        X, names = state["X"], state["names"]
        if not (len(names) == len(state["rows"]) == len(state["predicted"]) == (0 if X is None else len(X))):
            raise ValueError("The checkpoint is damaged: the samples that wait for labels do not fit together.")
        self.n_dropped = int(state["n_dropped"])
        self._waiting = {}
        for k, name in enumerate(names):
            classes, shares = state["classes"][k], state["probabilities"][k]
            found = None if classes is None else dict(zip(classes, np.asarray(shares).tolist(), strict=True))
            self._waiting[name] = Waiting(int(state["rows"][k]), X[k : k + 1], state["predicted"][k], found)
