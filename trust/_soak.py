"""Work that goes on for long: the memory of the process and the time of each part, early and late."""

import gc
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor

import cases
import consilience as cs
from _fits import ONLINE, answers, fitted, numbers, rows_of, samples
from consilience.io import read_checkpoint, write_checkpoint

CHUNK = 1000
MEGABYTES = 4.0  # growth that is allowed after the first fifth: 4 bytes for each of a million samples
SLOWER = 2.0  # limit of the median time of a part in the last fifth, relative to that in the second fifth
ENOUGH = 50  # parts for which a median of a fifth says something about time
ROUNDING = 1e-9  # of scores of the same stream in other chunks, relative to the largest

#: These keep every update, or all samples with an update, so their stream has a margin, and updates come to an end
UNBOUNDED = [
    name
    for name in ONLINE
    if cases.LEARNERS[name].average == "voted" or isinstance(cases.LEARNERS[name], cs.VectorPerceptron)
]


class Soaked(NamedTuple):
    """What was measured, and what is wrong, if anything."""

    done: int
    seconds: float  # of the processor
    slower: float  # time of a part late, relative to early
    growth: float | None  # megabytes after the first fifth
    wrong: str = ""

    def row(self, name: str) -> list[str]:
        """Return the cells of a table."""
        growth = "not measured" if self.growth is None else f"{self.growth:+.1f} MB"
        return [name, f"{self.done:,}", f"{self.done / max(self.seconds, 1e-9):,.0f}", f"{self.slower:.2f}", growth]


def resident() -> float | None:
    """Return the memory of this process in megabytes, where the system tells it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def soak(work: Callable[[Any], int], parts: int, data: Callable[[int], Any] = int) -> Soaked:
    """Work on the data of each part, and count what it did; compare memory and time late and early."""
    times, memory, done = np.zeros(parts), [], 0
    for k in range(parts):
        given = data(k)
        start = time.process_time()
        done += work(given)
        times[k] = time.process_time() - start
        if parts >= ENOUGH and k in (parts // 5, parts - 1):
            gc.collect()
        memory.append(resident())
    fifth = max(parts // 5, 1)
    slower = float(np.median(times[-fifth:]) / max(np.median(times[fifth : 2 * fifth]), 1e-9))
    growth = None if memory[-1] is None else memory[-1] - memory[parts // 5]
    wrong = []
    if slower > SLOWER and parts >= ENOUGH:
        wrong.append(f"it becomes slower by a factor of {slower:.2f}")
    if growth is not None and growth > MEGABYTES:
        wrong.append(f"memory grows by {growth:.1f} MB")
    return Soaked(done, float(times.sum()), slower, growth, ", ".join(wrong))


# -- online learners
def chunk_of(name: str, k: int, size: int = CHUNK) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return chunk k of the stream of a learner: noisy classes that overlap, or classes with a margin."""
    rng = np.random.default_rng([7, k])
    sign = rng.choice([-1.0, 1.0], size=size)
    X = {"a": rng.normal(size=(size, 3)) + sign[:, None], "b": rng.normal(size=(size, 2)) + 0.5 * sign[:, None]}
    if name in UNBOUNDED:
        X = {
            view: np.clip(block - s, -1.0, 1.0) + 3 * s
            for (view, block), s in zip(X.items(), _shifts(sign), strict=True)
        }
    if is_regressor(cases.LEARNERS[name]):
        return X, X["a"][:, 0] - 0.5 * X["b"][:, 1] + 0.1 * rng.normal(size=size)
    return X, (sign > 0).astype(int)


def _shifts(sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return sign[:, None], 0.5 * sign[:, None]


def learn(model: Any, X: dict[str, np.ndarray], y: np.ndarray) -> Any:
    """Learn a chunk; the classes are announced."""
    known = {} if is_regressor(model) or hasattr(model, "n_samples_seen_") else {"classes": [0, 1]}
    return model.partial_fit(X, y, **known)


def scores(model: Any, X: dict[str, np.ndarray]) -> np.ndarray:
    """Return scores, or predicted numbers."""
    return np.asarray(model.predict(X) if is_regressor(model) else model.decision_function(X))


def soak_learner(name: str, n_samples: int) -> Soaked:
    """Learn a long stream in chunks; the start of it again in other chunks."""
    model, start = clone(cases.LEARNERS[name]), clone(cases.LEARNERS[name])
    begin, kept = min(n_samples // CHUNK, 5), []

    def work(given: Any) -> int:
        learn(model, *given)
        if model.n_samples_seen_ == begin * CHUNK:
            kept.append(model.snapshot())
        return CHUNK

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The budget of")
        found = soak(work, n_samples // CHUNK, lambda k: chunk_of(name, k))
        for k in range(begin):
            X, y = chunk_of(name, k)
            for rows in np.array_split(np.arange(CHUNK), 13 + k):
                learn(start, rows_of(X, rows), y[rows])
    test = chunk_of(name, 10**6)[0]
    wrong = [found.wrong] if found.wrong else []
    if model.n_samples_seen_ != found.done:
        wrong.append(f"{model.n_samples_seen_:,} samples counted of {found.done:,}")
    if not np.isfinite(scores(model, test)).all():
        wrong.append("predictions are not finite")
    before, again = scores(kept[0]._model, test), scores(start, test)
    off = float(np.abs(before - again).max() / np.abs(before).max())
    counts = [
        [getattr(own, c, 0) for c in ("n_samples_seen_", "n_mistakes_", "n_updates_")]
        for own in (kept[0]._model, start)
    ]
    if off > (0.0 if model._is_primal() else ROUNDING) or counts[0] != counts[1]:
        wrong.append(f"other chunks differ by {off:.1e}, counts {counts}")
    return found._replace(wrong="; ".join(wrong))


# -- other work
def single_samples(name: str, parts: int, size: int) -> Soaked:
    """Learn and predict sample by sample."""
    model = clone(cases.LEARNERS[name])

    def work(given: Any) -> int:
        X, y = given
        for i in range(size):
            row = {view: block[i] for view, block in X.items()}
            model.predict_one(row)
            model.learn_one(row, y[i])
        return size

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The budget of")
        return soak(work, parts, lambda k: chunk_of(name, k, size))


def monitored(name: str, parts: int, size: int) -> Soaked:
    """Predict, learn and measure a stream, with drift by view."""
    model, monitor = clone(cases.LEARNERS[name]), cs.StreamMonitor(window=100, by_view=True, drift=True)

    def work(given: Any) -> int:
        monitor.update(model.predict_then_learn(*given))
        return size

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The budget of")
        return soak(work, parts, lambda k: chunk_of(name, k, size))


def predictions(name: str, parts: int, size: int) -> Soaked:
    """Call every method of a fitted model again and again."""
    model, X = fitted(name), samples(name, 40, seed=1)[0]

    def work(k: int) -> int:
        for _ in range(size):
            answers(model, X)
        return size

    return soak(work, parts)


def files(name: str, parts: int, size: int, folder: Path) -> Soaked:
    """Save and load a model again and again."""
    model, path = fitted(name), folder / "model.cons"
    X = samples(name, 20, seed=1)[0]
    expected = numbers(answers(model, X)).tobytes()

    def work(k: int) -> int:
        for _ in range(size):
            cs.save(model, path)
            if numbers(answers(cs.load(path), X)).tobytes() != expected:
                raise AssertionError(f"'{name}' comes back from its file with other answers")
        return size

    return soak(work, parts)


def checkpoints(name: str, parts: int, size: int, folder: Path) -> Soaked:
    """Learn, write a checkpoint and go on from it, again and again."""
    place = {"model": clone(cases.LEARNERS[name]), "position": 0}

    def work(k: int) -> int:
        X, y = chunk_of(name, k, 10 * size)
        for i in range(size):
            rows = slice(10 * i, 10 * i + 10)
            learn(place["model"], rows_of(X, rows), y[rows])
            write_checkpoint({**place, "position": k * size + i}, folder / "state.cons")
            place.update(read_checkpoint(folder / "state.cons"))
        return size

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The budget of")
        return soak(work, parts)


def fits(names: list[str], parts: int, size: int) -> Soaked:
    """Fit each of some estimators, again and again, in one process."""

    def work(k: int) -> int:
        for _ in range(size):
            for name in names:
                fitted(name, 30, seed=k)
        return size * len(names)

    return soak(work, parts)
