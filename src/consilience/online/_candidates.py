"""Samples and outputs of any kind, and the outputs that a sample may have."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..views._construction import is_mapping
from ..views._reading import objects_of
from ..views.container import Views
from ..views.conversion import as_views


class Choice(NamedTuple):
    """The outputs that a sample may have, and the position of the true one among them (-1: not known)."""

    outputs: Sequence[Any]
    truth: int = -1


def output_key(output: Any) -> Hashable:
    """Return what equal outputs have in common: lists, tuples and arrays of equal items are equal."""
    try:
        hash(output)
        return output
    except TypeError:  # a list, or a tuple of lists
        if isinstance(output, np.ndarray):
            output = output.tolist()
        if isinstance(output, (list, tuple)):
            return tuple(map(output_key, output))
        if isinstance(output, Mapping):
            return frozenset((name, output_key(item)) for name, item in output.items())
        if isinstance(output, set):
            return frozenset(output)
        raise TypeError(
            f"Outputs are compared with each other, and {type(output).__name__} cannot be. Give strings, numbers, "
            "tuples, lists or objects with a hash."
        ) from None


class OutputList:
    """Different outputs, and where they are."""

    def __init__(self, outputs: Iterable[Any] = ()):
        self.outputs = list(outputs)
        self.places = {output_key(output): place for place, output in enumerate(self.outputs)}

    def __getstate__(self) -> dict[str, Any]:
        return {"outputs": self.outputs}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.outputs = list(state["outputs"])
        self.places = {output_key(output): place for place, output in enumerate(self.outputs)}

    def with_new(self, outputs: Iterable[Any]) -> "OutputList":
        """Return a list with these outputs too, sorted; those that are new come last where they cannot be sorted."""
        new = {output_key(output): output for output in outputs}
        found = [output for key, output in new.items() if key not in self.places]
        if not found:
            return self
        try:
            return OutputList(sorted(self.outputs + found))
        except (TypeError, ValueError):  # such as strings and numbers, or arrays
            return OutputList(self.outputs + found)

    def place(self, output: Any) -> int:
        """Return where an output is; one that is new comes last."""
        key = output_key(output)
        if key not in self.places:
            self.places[key] = len(self.outputs)
            self.outputs.append(output)
        return self.places[key]


def margins_of(scores: Sequence[np.ndarray], choices: Sequence[Choice]) -> np.ndarray:
    """Return the lead of the true output over the best other one; infinite where there is no other."""
    found = np.full(len(choices), np.inf)
    for i, (own, choice) in enumerate(zip(scores, choices, strict=True)):
        if len(own) > 1:
            found[i] = own[choice.truth] - np.delete(own, choice.truth).max()
    return found


def ordered(outputs: Sequence[Any], scores: np.ndarray, top: int) -> list[tuple[Any, float]]:
    """Return the outputs of the largest scores, the largest first, with their scores."""
    return [(outputs[t], float(scores[t])) for t in np.argsort(-scores, kind="stable")[:top].tolist()]


def read_candidates_of(outputs: Any, *x: Any) -> OutputList:
    """Return candidates: those of a sample x, or of all samples."""
    try:
        found = OutputList(outputs)
    except TypeError as error:
        raise TypeError(f"{_candidates_text(*x)} must be a sequence of outputs. {error}") from error
    if not found.outputs:
        raise ValueError(f"{_candidates_text(*x)} has no output. Give at least one.")
    if len(found.places) < len(found.outputs):
        raise ValueError(f"{_candidates_text(*x)} has the same output twice. Give each once.")
    return found


def _candidates_text(*x: Any) -> str:
    return f"`candidates({short_text(x[0])})`" if x else "`candidates`"


def short_text(value: Any) -> str:
    """Return how an object is written, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def sample_of(X: Any, i: int) -> Any:
    """Return one sample: of Views, a dict of the rows that it has."""
    if not isinstance(X, Views):
        return X[i]
    there = [name for name in X.names if X.present(name)[i]]
    return {name: X[name][[i]] if sp.issparse(X[name]) else X[name][i] for name in there}


def check_lengths(n: int, n_outputs: int) -> None:
    """Validate that every sample has an entry in y."""
    if n != n_outputs:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n}, y has {n_outputs}.")


def as_items(values: Any, what: str) -> np.ndarray:
    """Return samples or outputs of any kind as an array of objects: rows of tables, dicts of rows of Views."""
    if isinstance(values, Views) or is_mapping(values):
        X = as_views(values)
        return objects_of([sample_of(X, i) for i in range(len(X))])
    if sp.issparse(values):
        values = sp.csr_array(values)
        return objects_of([values[[i]] for i in range(values.shape[0])])
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what} must be a sequence with one entry per sample; got {type(values).__name__}.")
    return objects_of(list(values))


def as_output_array(outputs: list[Any]) -> np.ndarray:
    """Return outputs as an array: of their own type where they are strings, booleans or numbers, else of objects."""
    for kinds in ((str,), (bool, np.bool_), (int, float, np.number)):
        if all(isinstance(output, kinds) for output in outputs):
            return np.array(outputs)
    return objects_of(outputs)
