"""Columns for words, tokens, categories and maps by hashing: their number is fixed, and nothing is learned."""

import re
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction import FeatureHasher

from ._reading import is_missing

HASHED_COLUMNS = 2**18  # of 10,000 tokens 4% share a column, and weights take 2 MiB for each output
_WORD = re.compile(r"\w+")


class HashedTokens(TransformerMixin, BaseEstimator):
    """Count the tokens of each sample in columns that the hash of a token chooses (Weinberger et al. 2009).

    A sample is a string, a list of tokens or numbers, a map of keys to numbers or strings, or one number. Tokens have
    the same column in every process and on every machine, by scikit-learn's `FeatureHasher` (MurmurHash3).

    Parameters
    ----------
    n_features : int
        Number of columns.
    signed : bool
        Whether a hash chooses the sign of a token too, so that tokens in the same column cancel out on average.
    whole : bool
        Whether a string is one token. By default, its tokens are its words in lower case.
    """

    def __init__(self, n_features: int = HASHED_COLUMNS, signed: bool = True, whole: bool = False):
        self.n_features = n_features
        self.signed = signed
        self.whole = whole

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: columns do not depend on the samples."""
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """Return the counts; samples that are None, and tokens that are NaN, have none."""
        if sp.issparse(X):
            raise TypeError("Hashing takes text, lists of tokens, maps or ids; got a sparse matrix. Leave it as it is.")
        rows = X.tolist() if isinstance(X, np.ndarray) else X
        hasher = FeatureHasher(self.n_features, input_type="pair", alternate_sign=self.signed)
        counts = sp.csr_array(hasher.transform(self._pairs(row) for row in rows))
        counts.has_canonical_format = True  # its rows are sorted and without duplicates, and SciPy would check again
        return counts

    def _pairs(self, row: Any) -> Iterator[tuple[str, Any]]:
        """Yield tokens with their values."""
        if isinstance(row, str):
            yield from ((token, 1) for token in ((row,) if self.whole else _WORD.findall(row.lower())))
        elif isinstance(row, Mapping):
            for key, value in row.items():
                if not isinstance(value, (str, Real)) and not is_missing(value):
                    raise TypeError(f"A map has {value!r} for the key {key!r}. Give a number or a string for each key.")
                if not is_missing(value):
                    yield _token(key), value if isinstance(value, str) else _number(key, value)
        elif isinstance(row, (list, tuple, set, frozenset, np.ndarray)):
            yield from ((_token(token), 1) for token in row if not is_missing(token))
        elif not is_missing(row):
            yield _token(row), 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = tags.input_tags.dict = tags.input_tags.allow_nan = True
        return tags


def _number(key: Any, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"A map has a number for the key {key!r} that no float64 holds. Scale it.") from None


def _token(value: Any) -> str:
    """Return a token as text; 3 and 3.0 are the same id."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    raise TypeError(f"Tokens are strings or numbers; got {value!r} ({type(value).__name__}). Convert it to text.")
