"""Model files: nothing on disk is trusted, no code runs on load, writes are atomic.

A file is one line of magic, one line of JSON (format, version of the library, SHA-256 of the rest), then the model as
skops writes it. Damage is seen by the digest before anything is read. The digest protects against accidents, not
against malice: so sizes are checked before anything is unpacked, types against an explicit list before anything is
built, and states (shapes, index ranges) before the model is returned.
"""

import hashlib
import importlib
import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .. import __version__
from ..batch._view_metric import ViewMetric
from ..online._dual import Grams, KernelMachine, ProjectronMachine, Support
from ..online._events import Events
from ..online._linear import LinearMachine, LinkMachine
from ..solvers.certificates import Certificate, Solution
from ..views._blocks import Gram
from ..views.container import Views
from ._states import BadState, check_state
from ._unpacking import TooLarge, check_sizes
from .writing import write_atomically

__all__ = ["load", "save"]

_MAGIC = b"consilience model\n"
_FORMAT = 1
_LONGEST_HEADER = 4096
_HOMES = (
    "approx", "batch._view_metric", "batch.fusion", "batch.kernels_learned", "batch.margin", "batch.margin_outputs",
    "batch.metric", "batch.metric_cv", "batch.ridge", "batch.ridge_cv", "batch.svc", "kernels.algebra",
    "kernels.scalar", "kernels.structured", "online.kernelized", "online.matrix", "online.multicue",
    "online.perceptron", "online.vector", "preprocessing",
)  # fmt: skip


def save(model: Any, path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : estimator, kernel or Views
        What to save. Everything inside must be of types that `load` trusts: the library's own, and those of NumPy,
        SciPy and scikit-learn that skops holds for safe, which trees of scikit-learn are not. Functions of your own
        given to kernels are not among them either.
    path : path
        Where to; an existing file is replaced only when the new one is complete.
    trusted : sequence of str, optional
        Full names of other types inside, such as an estimator of another package; `load` must be given them too.

    See Also
    --------
    load : Read it back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cs.save(cs.kernels.RBF(gamma=0.5), Path(folder) / "kernel.cons")
    ...     print(cs.load(Path(folder) / "kernel.cons"))
    RBF(gamma=0.5)
    """
    skops = _skops()
    payload = skops.dumps(model)
    foreign = _untrusted(payload, trusted)
    if foreign:
        raise TypeError(
            f"Not saved: {type(model).__name__} holds {', '.join(foreign)}, which `load` would refuse. Name types that "
            "you trust by trusted=[...] here and at load; replace functions of your own by kernels of the library."
        )
    header = {"format": _FORMAT, "version": __version__, "sha256": hashlib.sha256(payload).hexdigest()}
    content = _MAGIC + json.dumps(header).encode() + b"\n" + payload
    write_atomically(Path(path), lambda file: file.write(content))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote. No code in the file runs.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, optional
        Full names of types to trust besides the library's own and those that skops holds for safe.

    Returns
    -------
    object
        The model.

    See Also
    --------
    save : Write it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cs.save(cs.Views(a=[[1.0, 2.0]]), Path(folder) / "views.cons")
    ...     print(cs.load(Path(folder) / "views.cons"))
    Views of 1 sample
      a  dense float64  2 columns
    """
    skops = _skops()
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(f"'{path}' is not a model file of consilience. Files are written by consilience.save.")
        head, payload = file.readline(_LONGEST_HEADER), file.read()
    try:
        header = json.loads(head)
        found, digest, version = int(header["format"]), str(header["sha256"]), str(header["version"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"'{path}' is damaged: its header cannot be read. Save the model again.") from error
    if found != _FORMAT:
        raise ValueError(
            f"'{path}' has file format {found}, written by version {version}; this is version {__version__} and reads "
            f"format {_FORMAT}. Load it with that version."
        )
    if hashlib.sha256(payload).hexdigest() != digest:
        raise ValueError(f"'{path}' is damaged: its checksum does not match its content. Save the model again.")
    try:
        check_sizes(payload)
        foreign = _untrusted(payload, trusted)
    except TooLarge as error:
        raise ValueError(f"'{path}' is refused: {error}.") from error
    except Exception as error:  # no zip archive, no schema in it: whatever skops stumbles on
        raise ValueError(f"'{path}' is damaged: what it holds is not a model. Save the model again.") from error
    if foreign:
        raise ValueError(
            f"'{path}' is refused: it holds {', '.join(foreign)}, which are not trusted. If you know the file, name "
            "them by trusted=[...]."
        )
    try:
        model = skops.loads(payload, trusted=[*_own_types(), *trusted])
    except Exception as error:
        raise ValueError(
            f"'{path}' is damaged: its content cannot be read as a model. Save the model again."
        ) from error
    try:
        check_state(model)
    except BadState as error:
        raise ValueError(f"'{path}' is damaged: {error}. Save the model again.") from error
    return model


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Model files need the package skops: pip install 'consilience[io]'.") from error
    return skops.io


def _untrusted(payload: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(_skops().get_untrusted_types(data=payload)) - set(_own_types()) - set(trusted))


@cache
def _own_types() -> tuple[str, ...]:
    """The classes of the library that may stand in a file, by full name: a list, not a prefix."""
    found: list[type] = [Views, Gram, Certificate, Solution, ViewMetric, Events, Grams, Support]
    found += [LinearMachine, LinkMachine, KernelMachine, ProjectronMachine]
    for home in _HOMES:
        module = importlib.import_module(f".{home}", __package__)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, BaseEstimator) and value.__module__ == module.__name__:
                found.append(value)
    found += [sp.csr_array, sp.csr_matrix, np.dtype]
    return tuple(f"{cls.__module__}.{cls.__qualname__}" for cls in found)
