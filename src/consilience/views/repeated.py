"""Samples that repeat others, and an order of the samples that follows from their values alone."""

import warnings
import zlib

import numpy as np
import scipy.sparse as sp

from .._backend import like, namespace, take_rows, to_numpy
from . import _blocks
from .container import Views

_COLUMNS = 100  # columns of a view that are enough to see that two equal samples are not equal by chance
_EXPECTED = 0.01  # number of samples that may be expected to equal a repeated one by chance


def sample_projections(X: Views) -> np.ndarray:
    """Return two random projections of each view of each sample, (n, 2 m), equal for equal samples; 0 if missing.

    Neither the names of the views nor the order of the samples changes them.
    """
    return np.hstack([np.where(X.present(name)[:, None], _view_keys(X.block(name)), 0.0) for name in X.names])


def _view_keys(block: _blocks.Block) -> np.ndarray:
    values = take_rows(block.values, block.index) if isinstance(block, _blocks.Gram) else block
    if isinstance(values, np.ndarray) and values.dtype == object:
        texts = [str(value).encode() for value in values]
        return np.array([[zlib.crc32(text), zlib.adler32(text)] for text in texts]) / 2.0**32
    if not sp.issparse(values):
        xp = namespace(values)
        values = xp.where(xp.isnan(values), xp.full_like(values, np.pi), values)  # a gap equals a gap only
    weights = np.random.default_rng(0).normal(size=(values.shape[1], 2))
    with np.errstate(all="ignore"):
        keys = to_numpy(values @ like(weights.astype(str(values.dtype).rpartition(".")[2]), values))
    keys = np.nan_to_num(np.asarray(keys, dtype=np.float64))
    spread = np.std(keys, axis=0)
    return np.round((keys - keys.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 10)  # rounding of the products


def repeated_samples(X: Views) -> np.ndarray | None:
    """Return the number of the unit of each sample, where equal samples are one unit; None if none repeats another.

    Samples whose equality may be chance, as in a table of a few categories, are units of their own: fewer than one in
    a hundred samples may be expected to equal a repeated one, if columns were independent.
    """
    there = np.column_stack([X.present(name) for name in X.names])
    keys = np.hstack([sample_projections(X), there])
    units, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)[1:]
    units = units.ravel()
    if len(counts) == len(X):
        return None
    chance = np.log(len(X)) + sum(np.where(X.present(name), _log_chance(X.block(name)), 0.0) for name in X.names)
    alone = (counts[units] > 1) & (chance > np.log(_EXPECTED))
    units[alone] = len(counts) + np.arange(alone.sum())
    units = np.unique(units, return_inverse=True)[1].ravel()
    return None if units.max() + 1 == len(X) else units


def tell_repeated(X: Views, remedy: str) -> np.ndarray | None:
    """Return the units of `repeated_samples`, and warn of equal samples with their number."""
    units = repeated_samples(X)
    if units is not None:
        warnings.warn(
            f"{len(units) - units.max() - 1:,} of {len(units):,} labeled samples repeat another one in all views. "
            f"Equal samples are held out together. {remedy}",
            UserWarning,
            stacklevel=4,
        )
    return units


def _log_chance(block: _blocks.Block) -> np.ndarray:
    """Return the logarithm of the share of samples that would equal each sample if columns were independent."""
    if isinstance(block, _blocks.Gram):
        return np.full(len(block), -np.inf)
    n = block.shape[0]
    if isinstance(block, np.ndarray) and block.dtype == object:
        texts, place, counts = np.unique([str(value) for value in block], return_inverse=True, return_counts=True)
        long = np.char.str_len(texts) > 16
        return np.where(long, -np.inf, np.log(counts / n))[place.ravel()]
    if sp.issparse(block):
        most = np.argsort(-np.bincount(block.indices, minlength=block.shape[1]), kind="stable")[:_COLUMNS]
        values = block[:, most].toarray()
    else:
        step = max(block.shape[1] // _COLUMNS, 1)
        values = to_numpy(block[:, ::step])
    total = np.zeros(n)
    for column in values.T:
        place, counts = np.unique(column, return_inverse=True, return_counts=True)[1:]
        total += np.log(counts / n)[place.ravel()]
    return total
