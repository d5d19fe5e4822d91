"""One run of progressive validation: predicting, learning, scoring and writing, piece by piece."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..io._digests import digest_of
from ..io.quarantine import Quarantine
from ..online._predictions import StreamPredictions
from ..online._stream import uninterrupted
from ..views._reading import is_missing
from ..views.container import Views
from ._pending import PendingLabels, Waiting
from ._stream_files import LineFile, PredictionFile, as_python, drop_lines_from, file_size, json_line, last_row
from ._stream_items import Piece
from ._stream_states import restored_count
from .monitoring import StreamMonitor

TAIL = 16  # samples before its position by which a checkpoint recognizes its stream
ACTING = 1024  # a model acts on drift before rows whose number is a multiple of this, however the stream is cut


class Refused(Quarantine):
    """A quarantine that knows the rows which were refused ahead of the position."""

    def __init__(self, path: Any = None):
        super().__init__(path)
        self.rows: list[int] = []
        self._n_before = 0
        self.offset = 0  # rows of another stream before
        self.first = ""  # the first error

    def add(self, row: int, error: str, content: Any = None) -> None:
        super().add(row + self.offset, error, content)
        self.rows.append(int(row) + self.offset)
        self.first = self.first or str(error)

    def before(self, position: int) -> int:
        """Return the number of refused rows before a position, which does not fall; only later ones are kept."""
        later = [row for row in self.rows if row >= position]
        self._n_before += len(self.rows) - len(later)
        self.rows = later
        return self._n_before


class StreamRun:
    """A model on its way along a stream: position, monitor, samples that wait for labels, files."""

    def __init__(self, model: Any, options: Any, classes: Any, verbose: bool):
        self.model, self.options, self.classes, self.verbose = model, options, classes, verbose
        self.monitor = StreamMonitor(
            options.measures, window=options.window, fading=options.fading, by_view=options.by_view,
            drift=options.drift, on_drift=options.on_drift,
        )  # fmt: skip
        self.pending = PendingLabels(options.max_pending)
        self.refused = Refused(options.quarantine) if options.on_error == "skip" else None
        self.position = 0  # rows of the stream so far, which is where it continues
        self.complete = True  # whether all that was learned is before the position
        self.n_ignored = 0  # rows that belong to no sample, or to one that waits already
        self._skipped = 0  # rows refused before the checkpoint
        self._last_row = -1  # the last row that was learned
        self._last: list[Piece] = []  # the last pieces, with at least `TAIL` samples
        self._tail: Any = (
            None  # what `_last_samples` returned at the checkpoint, until the stream is known to have them
        )
        self._n_acted = 0  # drifts that the model has acted on
        self._told = 0  # drifts in the log
        self._started, self._first = time.perf_counter(), 0
        self._log: LineFile | None = None
        self._logged: int | None = None  # position of the last line of the log
        self._predictions: PredictionFile | None = None
        self._quarantined = 0  # bytes of the quarantine file that are of other streams

    # -- files
    def open(self, sizes: dict[str, int]) -> None:
        """Open the files; `sizes` are those at the checkpoint that the run continues from."""
        self._first, given = self.position, self.options
        if given.log is not None:
            self._log = LineFile(given.log, sizes.get("log"))
            self._logged = last_row(given.log) if sizes else None
        if given.predictions is not None:
            self._predictions = PredictionFile(given.predictions, sizes.get("predictions"))
        if given.quarantine is not None:  # rows are appended to those of other streams
            self._quarantined = sizes.get("quarantine", 0) if sizes else file_size(given.quarantine)
            if sizes:
                drop_lines_from(given.quarantine, self.position, self._quarantined)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files, for a checkpoint; that of a quarantine is the one before this stream."""
        files = {"log": self._log, "predictions": None if self._predictions is None else self._predictions.file}
        sizes = {name: file.size for name, file in files.items() if file is not None}
        return sizes | ({} if self.options.quarantine is None else {"quarantine": self._quarantined})

    def close(self) -> None:
        """Close the files."""
        if self._log is not None:
            self._log.close()
        if self._predictions is not None:
            self._predictions.file.close()
        if self.refused is not None:
            self.refused.close()

    # -- the way
    def pieces(self, source: Iterator[Piece], ends: list[int], limit: int | None, offset: int) -> Iterator[Piece]:
        """Yield pieces that end before multiples of the given numbers of rows, however the stream is divided.

        `offset` is added to the numbers of the rows: those of another stream before.
        """
        if limit is not None and self.position >= limit:
            return
        for piece in source:
            if offset:
                piece = piece._replace(rows=piece.rows + offset, end=piece.end + offset)
            start, n = int(np.searchsorted(piece.rows, self._last_row + 1)), len(piece.rows)
            if start:  # samples before a checkpoint
                self._remember(piece.part(0, start))
            if start < n:
                self._check_stream()
            while start < n:
                row = int(piece.rows[start])
                if limit is not None and row >= limit:
                    return
                bound = min(row - row % end + end for end in ends)
                bound = bound if limit is None else min(bound, limit)
                stop = int(np.searchsorted(piece.rows, bound))
                yield piece.part(start, stop)
                start = stop
            if limit is not None and self.position >= limit:
                return
        self._check_stream()
        if self.refused is not None:  # rows after the last sample
            self.position = max([self.position, *(row + 1 for row in self.refused.rows)])

    def learn(self, piece: Piece) -> None:
        """Predict, score and learn a piece, after the model has acted on drift."""
        with uninterrupted():  # so that model, monitor, files and position always agree
            if self.options.on_drift != "tell" and int(piece.rows[0]) // ACTING > self._last_row // ACTING:
                self._act()
            delayed = piece.ids is not None and (len(self.pending) or any(map(is_missing, piece.labels)))
            before = self.position
            if delayed or piece.X is None:
                self._learn_delayed(piece)
            else:
                self._learn_rows(piece)
                self._advance(piece)
            if before // self.options.log_every < self.position // self.options.log_every:
                self.write_log()

    def _advance(self, piece: Piece) -> None:
        """Set the position behind samples that were learned."""
        self.position, self._last_row, self.complete = piece.end, int(piece.rows[-1]), True
        self._remember(piece)

    def _learn_rows(self, piece: Piece) -> None:
        """Predict and learn samples with features; with on_error="skip" one by one, if they are refused together."""
        assert piece.X is not None
        try:
            found = self._predict_then_learn(piece.X, piece.labels, piece.weights)
        except MemoryError:
            raise
        except Exception as error:
            if self.refused is None:
                raise _at_rows(error, piece.rows) from error
            if len(piece.rows) == 1:
                self._refuse(error, piece)
                return
            for i in range(len(piece.rows)):
                self._learn_rows(piece.part(i, i + 1))
            return
        names = piece.ids if piece.ids is not None else piece.X.sample_names
        own = None if names is None else np.asarray(names, dtype=object)[found.rows]
        self._score(found, piece.rows[found.rows], own)

    def _predict_then_learn(self, X: Views, labels: Any, weights: Any) -> StreamPredictions:
        found: StreamPredictions = self.model.predict_then_learn(
            X, labels, sample_weight=weights, classes=self.classes, view_margins=self.options.by_view
        )
        return found

    def _score(self, found: StreamPredictions, rows: Any, names: Any) -> None:
        self.complete = False
        for event in self.monitor.update(found):
            if self.verbose:
                print(event, file=sys.stderr)
        if self._predictions is not None and len(found.y):
            self._predictions.write(rows, names, found)

    def _refuse(self, error: Exception, piece: Piece) -> None:
        """Count a row that was refused, and write it to the quarantine file; without one, raise the error."""
        if self.refused is None:
            raise _at_rows(error, piece.rows) from error
        views = {} if piece.X is None else _row_of(piece.X)
        shown = {name: np.asarray(value).tolist() for name, value in views.items()}
        names = {} if piece.ids is None else {"id": as_python(piece.ids[0])}
        row = int(piece.rows[0]) - self.refused.offset
        self.refused.add(row, str(error), {**names, **shown, "target": as_python(piece.labels[0])})

    # -- labels that come later
    def _learn_delayed(self, piece: Piece) -> None:
        """Learn samples with names, in order: some without a label yet, some whose label comes now."""
        start = 0
        for i in range(len(piece.rows)):
            name = None if piece.ids is None else as_python(piece.ids[i])
            labeled = not is_missing(piece.labels[i])
            waits, complete = name is not None and name in self.pending, piece.X is not None
            if labeled and complete and not waits:
                continue  # an ordinary sample, learned with those next to it
            if start < i:
                self._learn_rows(piece.part(start, i))
                self._advance(piece.part(start, i))
            start, one = i + 1, piece.part(i, i + 1)
            if labeled and waits:
                self._learn_late(name, one)
            elif not labeled and complete and name is not None and not waits:
                self._predict_early(name, one)
            elif self.refused is None:
                self.n_ignored += 1
            else:
                why = "waits for its label already" if waits else "waits for a label" if labeled else "can be kept"
                self._refuse(ValueError(f"{'The' if waits else 'No'} sample with the id {name!r} {why}."), one)
            self._advance(one)
        if start < len(piece.rows):
            self._learn_rows(piece.part(start, len(piece.rows)))
            self._advance(piece.part(start, len(piece.rows)))

    def _predict_early(self, name: Any, one: Piece) -> None:
        """Predict a sample whose label is not known, and keep it."""
        assert one.X is not None
        x = _row_of(one.X)
        try:
            predicted = as_python(self.model.predict_one(x))
            shares = self.model.predict_proba_one(x) if hasattr(self.model, "predict_proba_one") else None
        except Exception as error:
            self._refuse(error, one)
            return
        shares = None if shares is None else {as_python(label): float(share) for label, share in shares.items()}
        self.pending.add(name, Waiting(int(one.rows[0]), one.X, predicted, shares))
        if self._predictions is not None:
            self._predictions.write_early(int(one.rows[0]), name, predicted, shares)

    def _learn_late(self, name: Any, one: Piece) -> None:
        """Learn a sample whose label came, and score the prediction that was made at first sight."""
        sample, self.complete = self.pending.take(name), False
        try:
            found = self._predict_then_learn(sample.X, one.labels, one.weights)
        except Exception as error:
            self._refuse(error, one._replace(X=sample.X))
            return
        if found.classes is None:
            found = replace(found, predicted=np.array([0.0 if sample.predicted is None else float(sample.predicted)]))
        elif np.ndim(found.y) == 1:
            classes, shares = found.classes.tolist(), sample.probabilities or {}
            code = classes.index(sample.predicted) if sample.predicted in classes else -1
            found = replace(found, predicted=np.array([code]))
            if found.probabilities is not None:
                found = replace(found, probabilities=np.array([[shares.get(label, 0.0) for label in classes]]))
        self._score(found, [sample.row], [name])

    # -- drift
    def _act(self) -> None:
        """Do what `on_drift` says about the drifts since the last time, once for each kind."""
        new, self._n_acted = self.monitor.events[self._n_acted :], len(self.monitor.events)
        for action, view in dict.fromkeys((e.action, e.view if e.action == "lower_view" else None) for e in new):
            if action == "forget":
                self.model.forget(0.5)
            elif action == "restart":
                self.model.forget(0.0)
            elif action == "lower_view":
                self.model.forget(0.5, view=view)

    # -- results
    def summary(self) -> str:
        """Return the text of the progress bar."""
        result = self.monitor.result()
        rate = (self.position - self._first) / max(self.seconds, 1e-9)
        shown = [f"{name} {value:.4g}" if result.task == "regression" else f"{name} {value:.2%}"
                 for name, value in (("error", result.error), ("baseline", result.baseline_error))]  # fmt: skip
        return f"{result.n_samples:,} samples, {rate:,.0f} per second, {', '.join(shown)}"

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return max(time.perf_counter() - self._started, 0.0)

    def result(self) -> Any:
        """Return the result so far."""
        return self.monitor.result(
            n_skipped=self.n_skipped, n_pending=len(self.pending), n_dropped=self.pending.n_dropped,
            n_ignored=self.n_ignored,
        )  # fmt: skip

    @property
    def n_skipped(self) -> int:
        """Number of rows before the position that were refused."""
        return self._skipped + (0 if self.refused is None else self.refused.before(self.position))

    def write_log(self) -> None:
        """Write a line with counts, measures, drifts since the last line, and the rate."""
        if self._log is None or self._logged == self.position:  # a stream that had ended is resumed
            return
        result = self.result().to_dict()
        names = ("samples", "mistakes", "error", "baseline_error", "compared", "measures", "baseline", "fading",
                 "fading_baseline", "skipped", "pending", "dropped", "ignored")  # fmt: skip
        drifts, self._told = result["drifts"][self._told :], len(result["drifts"])
        rate = (self.position - self._first) / max(self.seconds, 1e-9)
        line = {"row": self.position, **{name: result[name] for name in names}, "window": self.monitor.last_window(),
                "drifts": drifts, "seconds": round(self.seconds, 3), "rate": round(rate, 1)}  # fmt: skip
        self._log.write(json_line(line))
        self._logged = self.position

    # -- checkpoints
    def state(self) -> dict[str, Any]:
        """Return everything but the model, for a checkpoint."""
        return {
            "position": self.position, "last_row": self._last_row + 1, "skipped": self.n_skipped,
            "tail": self._last_samples() or self._tail,
            "acted": self._n_acted, "told": self._told, "ignored": self.n_ignored,
            "monitor": self.monitor.state(), "pending": self.pending.state(), "sizes": self.sizes(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.monitor.restore(state["monitor"])
        self.pending.restore(state["pending"])
        counts = [restored_count(state, name) for name in ("position", "skipped", "acted", "told")]
        self.position, self._skipped, self._n_acted, self._told = counts
        self._last_row = restored_count(state, "last_row") - 1
        self._tail, self.n_ignored = state.get("tail"), restored_count({"ignored": 0, **state}, "ignored")

    def begin(self, stream: Any, *, new_rows: bool) -> int:
        """Return the row from which on to read the stream: the last samples before a checkpoint are read again."""
        self._where = f"'{stream}'" if isinstance(stream, (str, os.PathLike)) else "The stream"
        if new_rows or self._tail is None:
            self._tail = None
            return 0 if new_rows else self.position
        if self.refused is not None:
            self.refused.start = self.position
        return int(self._tail[0])

    def _check_stream(self) -> None:
        """Raise if the last samples before the position are not those that the checkpoint has."""
        if self._tail is not None and self._tail != self._last_samples():
            raise ValueError(
                f"{self._where} is not the stream of the checkpoint: row {self._last_row:,} and those before differ or "
                "are not there. Give the stream that the checkpoint belongs to, which may have grown. To learn another "
                "one, use another --checkpoint, or a saved model (--model; in Python, resume='continue')."
            )
        self._tail = None

    def _remember(self, piece: Piece) -> None:
        self._last.append(piece)
        while sum(len(later.rows) for later in self._last[1:]) >= TAIL:
            del self._last[0]

    def _last_samples(self) -> tuple[int, str] | None:
        """Return the number of the first of the last samples, and a digest of their names and features.

        Their rows follow one another, so that reading them again refuses no row again.
        """
        samples = [piece.part(i, i + 1) for piece in self._last for i in range(len(piece.rows))[-TAIL:]][-TAIL:]
        first = self._last_row + 1 - len(samples)
        samples = [one for k, one in enumerate(samples) if one.rows[0] == first + k]
        if not samples:
            return None
        values = [(one.ids is not None and as_python(one.ids[0]), one.X and _row_of(one.X)) for one in samples]
        return int(samples[0].rows[0]), digest_of(values)


def _at_rows(error: Exception, rows: np.ndarray) -> Exception:
    """Return an error that names the rows of the stream that were refused."""
    if type(error) not in (ValueError, TypeError):
        return error
    where = f"Row {rows[0]:,}" if len(rows) == 1 else f"Rows {rows[0]:,} to {rows[-1]:,}"
    return type(error)(f"{where} of the stream: {error}")


def _row_of(X: Views) -> dict[str, Any]:
    """Return one sample as a dict of its rows by view."""
    return {name: X[name][0] for name in X.names if X.present(name)[0]}
