"""Kernels on strings, sequences of tokens, and trees.

A call encodes the samples of both arguments together as flat arrays of integers, which the compiled loops read.
"""

import numbers
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..solvers.linalg import mirror
from ..views import _blocks
from ..views._blocks import Block
from .base import Array, Kernel
from .scalar import Linear

__all__ = ["Spectrum", "Subsequence", "SubsetTree"]

_SEQUENCES = "strings or sequences of tokens (numeric tokens as a 1-D array of objects)"


# -- strings
class Spectrum(Kernel):
    """The spectrum kernel (Leslie, Eskin, Noble 2002), which counts common contiguous substrings of one length.

    k(s, t) = Σ_u count_u(s) count_u(t) over all substrings u of n symbols; 0 if a sample is shorter.

    Equals ``Linear()`` on the counts of ``CountVectorizer(analyzer="char", ngram_range=(n, n), lowercase=False)`` for
    strings without runs of white space. A call sorts all substrings and multiplies sparse matrices of counts.
    Short name: ``"spectrum"``.

    Parameters
    ----------
    length : int, default=3
        Number n of symbols of a substring, at least 1.

    Notes
    -----
    A sample is a string, whose symbols are its characters, or a sequence of hashable tokens, such as words.

    Examples
    --------
    >>> from consilience.kernels import Spectrum
    >>> Spectrum(2)(["anna", "hanna", "otto"])
    array([[3., 3., 0.],
           [3., 4., 0.],
           [0., 0., 3.]])
    >>> Spectrum(2)([["the", "cat", "sat"], ["the", "cat", "ran"]])
    array([[2., 1.],
           [1., 2.]])
    """

    _name = "spectrum"

    def __init__(self, length: int = 3):
        self.length = length

    def _gram(self, X: Block, Y: Block) -> Array:
        counts = self._counts(X, Y)
        return Linear()._gram(counts[: X.shape[0]], None if Y is None else counts[X.shape[0] :])

    def _diagonal(self, X: Block) -> Array:
        return Linear()._diagonal(self._counts(X, None))

    def _counts(self, X: Block, Y: Block) -> Block:
        """Return the counts of the substrings of X, then of Y; one column per distinct substring."""
        _check_length(self, self.length)
        codes, bounds = _encode_sequences(_samples(self, _SEQUENCES, X, Y))
        counts = _substring_counts(codes, bounds, int(self.length))
        few_columns = counts.nnz > 0.05 * counts.shape[0] * counts.shape[1]  # measured: then dense products are faster
        return counts.toarray() if few_columns else counts


def _substring_counts(codes: np.ndarray, bounds: np.ndarray, length: int) -> sp.csr_array:
    """Return how often each substring of the length occurs in each sequence codes[bounds[i] : bounds[i + 1]]."""
    n_windows = np.maximum(np.diff(bounds) - length + 1, 0)  # substrings of each sequence
    ends = np.concatenate(([0], np.cumsum(n_windows)))
    # where each substring begins among the codes
    windows = np.repeat(bounds[:-1] - ends[:-1], n_windows) + np.arange(ends[-1])
    alphabet = int(codes.max(initial=0)) + 1
    columns, n_columns = np.zeros(len(windows), dtype=np.int64), 1
    for step in range(length if len(windows) else 0):  # a substring becomes an integer whose digits are its symbols
        if n_columns > np.iinfo(np.int64).max // alphabet:  # the next digit could overflow: renumber the prefixes
            columns, n_columns = _numbered(columns)
        columns = columns * alphabet + codes[windows + step]
        n_columns *= alphabet
    columns, n_columns = _numbered(columns)
    counts = sp.csr_array((np.ones(len(columns)), columns, ends), shape=(len(n_windows), max(n_columns, 1)))
    counts.sum_duplicates()  # ones of equal substrings become counts
    return counts


def _numbered(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the values replaced by 0, 1, ..., equal ones by equal integers, and the number of distinct values."""
    distinct, numbered = np.unique(values, return_inverse=True)
    return numbered, len(distinct)


class _PairByPair(Kernel):
    """A kernel that a compiled loop evaluates for pairs of samples; subclasses define `_fill`."""

    @abstractmethod
    def _fill(self, X: Block, Y: Block, first: np.ndarray, last: np.ndarray, out: np.ndarray) -> None:
        """Write to out[i] the kernel of sample i of X with the samples first[i] to last[i] - 1 of X followed by Y."""

    def _gram(self, X: Block, Y: Block) -> Array:
        n = X.shape[0]
        matrix = np.empty((n, n if Y is None else Y.shape[0]))
        if Y is None:
            self._fill(X, None, np.zeros(n, dtype=np.int64), np.arange(1, n + 1), matrix)  # row i up to the diagonal
            mirror(matrix)
        else:
            self._fill(X, Y, np.full(n, n), np.full(n, n + Y.shape[0]), matrix)  # Y follows X
        return matrix

    def _diagonal(self, X: Block) -> Array:
        n = X.shape[0]
        diagonal = np.empty((n, 1))
        self._fill(X, None, np.arange(n), np.arange(1, n + 1), diagonal)  # each sample with itself
        return diagonal[:, 0]


class Subsequence(_PairByPair):
    """The gap-weighted subsequence kernel (Lodhi et al. 2002), which counts common subsequences and discounts gaps.

    k(s, t) = Σ_u Σ_(i: u = s[i]) Σ_(j: u = t[j]) λ^(l(i) + l(j)) over all u of n symbols. Here i and j are increasing
    positions, which need not be contiguous, and l(i) = i_n - i_1 + 1 is the length that they span. The dynamic program
    of the paper takes ``O(n |s| |t|)`` time and ``O(n |t|)`` memory.

    With λ = 1 it is the number of pairs of equal subsequences; with n = 1 it equals λ² ``Spectrum(1)``. Long samples
    have large values, so consider `normalize`. Short name: ``"subsequence"``.

    Parameters
    ----------
    length : int, default=2
        Number n of symbols of a subsequence, at least 1.
    decay : float, default=0.5
        Discount λ in (0, 1] per symbol that a subsequence spans.

    Notes
    -----
    A sample is a string, whose symbols are its characters, or a sequence of hashable tokens, such as words.

    Examples
    --------
    >>> from consilience.kernels import Subsequence
    >>> Subsequence(length=2, decay=0.5)(["cat", "car", "bar"])
    array([[0.140625, 0.0625  , 0.      ],
           [0.0625  , 0.140625, 0.0625  ],
           [0.      , 0.0625  , 0.140625]])
    """

    _name = "subsequence"

    def __init__(self, length: int = 2, decay: float = 0.5):
        self.length = length
        self.decay = decay

    def _fill(self, X: Block, Y: Block, first: np.ndarray, last: np.ndarray, out: np.ndarray) -> None:
        from ._compiled import subsequences

        _check_length(self, self.length)
        _check_decay(self, self.decay)
        codes, bounds = _encode_sequences(_samples(self, _SEQUENCES, X, Y))
        subsequences(codes, bounds, first, last, int(self.length), float(self.decay), out)


def _encode_sequences(samples: list[tuple[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return all symbols as integers in one array, and where each sample begins; equal symbols are equal integers."""
    for where, sample in samples:
        if not isinstance(sample, Sequence):
            raise TypeError(
                f"{where} must be a string or a sequence of tokens; got {type(sample).__name__}. Convert other "
                "collections to lists."
            )
    bounds = np.concatenate(([0], np.cumsum([len(sample) for _, sample in samples], dtype=np.int64)))
    if not all(isinstance(sample, str) for _, sample in samples):
        return np.array(_numbered_tokens(samples), dtype=np.int32), bounds
    # one integer per character; lone surrogates pass
    points = "".join(sample for _, sample in samples).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(points, dtype="<i4").astype(np.int32), bounds


def _numbered_tokens(samples: list[tuple[str, Any]]) -> list[int]:
    """Return all tokens as integers in the order of their first occurrence."""
    known: dict[Any, int] = {}
    codes = []
    for where, sample in samples:
        for token in sample:
            try:
                codes.append(known.setdefault(token, len(known)))
            except TypeError as error:
                raise TypeError(
                    f"{where} has a token of type {type(token).__name__}; tokens must be hashable, such as words. "
                    "Convert lists to tuples."
                ) from error
    return codes


# -- trees
class SubsetTree(_PairByPair):
    """The subset tree kernel (Collins, Duffy 2001), which counts common fragments of parse trees and discounts size.

    k(s, t) = Σ_(v in s) Σ_(w in t) C(v, w) over the nodes that are not leaves. A production is the label of a node with
    the labels of its children; leaves differ from other children. C(v, w) = 0 if the productions at v and w differ, and
    else C(v, w) = λ Π_i (1 + C(v_i, w_i)) over the children, where C of leaves is 0. So C = λ for equal pre-terminals.

    With λ = 1 it is the number of pairs of equal fragments: connected parts of a tree, of at least one production, that
    contain all children of a node or none. Time and memory grow with the number of pairs of nodes of equal production.
    Short name: ``"subset_tree"``.

    Parameters
    ----------
    decay : float, default=0.4
        Discount λ in (0, 1] per production of a fragment.

    Notes
    -----
    A sample is a bracketed string ``"(S (NP I) (VP (V ran)))"`` or nested tuples, ``("S", ("NP", "I"), ("VP", ("V",
    "ran")))``. A node without children, ``"(S)"``, is not a leaf: its production has an empty right side. The empty
    string and the empty tuple are the tree without nodes, whose kernel is 0.

    Examples
    --------
    >>> from consilience.kernels import SubsetTree
    >>> SubsetTree(decay=1.0)(["(S (NP I) (VP (V ran)))", "(S (NP we) (VP (V ran)))"])
    array([[10.,  6.],
           [ 6., 10.]])
    """

    _name = "subset_tree"

    def __init__(self, decay: float = 0.4):
        self.decay = decay

    def _fill(self, X: Block, Y: Block, first: np.ndarray, last: np.ndarray, out: np.ndarray) -> None:
        from ._compiled import common_subtrees

        _check_decay(self, self.decay)
        forest = _encode_trees(_samples(self, "trees as bracketed strings or nested tuples", X, Y))
        common_subtrees(forest, first, last, float(self.decay), out)


_OPEN, _WORD, _CLOSE = "(", "word", ")"  # the pieces of a tree's text
_PIECE = re.compile(r"\(\s*([^\s()]*)|([^\s()]+)|\)")
_EXAMPLE = "Write a tree as '(S (NP I) (VP (V ran)))'."


def _encode_trees(samples: list[tuple[str, Any]]) -> tuple[np.ndarray, ...]:
    """Return the trees as (bounds, production, links, children); nodes are numbered across trees, children first.

    Tree i has the nodes bounds[i] to bounds[i + 1] - 1. Node v has the production production[v], and
    children[links[v] : links[v + 1]] are those of its children that are not leaves.
    """
    bounds, links = [0], [0]
    production: list[int] = []
    children: list[int] = []
    known: dict[tuple, int] = {}
    for where, sample in samples:
        above: list[tuple[list, list[int]]] = []  # production and inner children so far of each open node
        for piece, label in _pieces(where, sample):
            if piece == _OPEN:
                above.append(([label], []))
            elif piece == _WORD:
                above[-1][0].append(label)
            else:
                rule, inner = above.pop()
                if above:
                    above[-1][0].append((rule[0],))  # a tuple, so that it differs from the leaf of the same label
                    above[-1][1].append(len(production))
                production.append(known.setdefault(tuple(rule), len(known)))
                children.extend(inner)
                links.append(len(children))
        bounds.append(len(production))
    return tuple(np.array(column, dtype=np.int64) for column in (bounds, production, links, children))


def _pieces(where: str, sample: Any) -> Iterator[tuple[str, str]]:
    """Return the pieces of a tree from left to right: opened nodes with their label, leaves, closed nodes."""
    if isinstance(sample, str):
        return _pieces_of_text(where, sample)
    if isinstance(sample, tuple):
        return _pieces_of_tuples(where, sample)
    raise TypeError(f"{where} must be a tree as a bracketed string or nested tuples; got {type(sample).__name__}.")


def _pieces_of_text(where: str, text: str) -> Iterator[tuple[str, str]]:
    depth, ended = 0, False
    for match in _PIECE.finditer(text):
        if depth == 0 and (ended or match[1] is None):  # text after the tree, or before its first '('
            raise _unreadable(where, "the end of the tree" if ended else "'('", text, match.start())
        if match[1] == "":
            raise _unreadable(where, "a label after '('", text, match.end())
        if match[1]:
            depth += 1
            yield _OPEN, match[1]
        elif match[2]:
            yield _WORD, match[2]
        else:
            depth -= 1
            ended = depth == 0
            yield _CLOSE, ""
    if depth:
        raise _unreadable(where, f"{depth} more ')'", text, len(text))


def _unreadable(where: str, expected: str, text: str, position: int) -> ValueError:
    got = repr(text[position : position + 20].split()[0]) if position < len(text) else "the end of the text"
    return ValueError(f"{where}: expected {expected} at character {position}, got {got}. {_EXAMPLE}")


def _pieces_of_tuples(where: str, tree: tuple) -> Iterator[tuple[str, str]]:
    end = object()  # marks in `ahead` where a node closes
    ahead: list[Any] = [tree] if tree else []  # a stack instead of recursion, since trees may be deep
    while ahead:
        item = ahead.pop()
        if item is end:
            yield _CLOSE, ""
        elif isinstance(item, str):
            yield _WORD, item
        elif isinstance(item, tuple):
            yield _OPEN, _label(where, item)
            ahead.append(end)
            ahead.extend(reversed(item[1:]))  # the first child comes off the stack first
        else:
            raise TypeError(f"{where}: expected a string or a tuple as child of a node, got {type(item).__name__}.")


def _label(where: str, node: tuple) -> str:
    if node and isinstance(node[0], str) and node[0]:
        return node[0]
    got = type(node[0]).__name__ if node and not isinstance(node[0], str) else "nothing"
    raise ValueError(f"{where}: expected a label, a string, as first entry of every tuple, got {got}.")


# -- checks
def _samples(kernel: Kernel, expected: str, X: Block, Y: Block) -> list[tuple[str, Any]]:
    """Return the samples of X, then of Y, each with its position for messages."""
    samples = []
    for name, block in (("X", X), ("Y", Y)):
        if block is None:
            continue
        if _blocks.kind(block) != "objects":
            raise TypeError(f"{kernel!r} takes {expected}; got {_blocks.kind(block)} numeric data for {name}.")
        samples += [(f"Sample {i} of {name}", sample) for i, sample in enumerate(block)]
    return samples


def _check_length(kernel: Kernel, length: Any) -> None:
    if not isinstance(length, numbers.Integral) or length < 1:
        raise ValueError(f"{kernel!r}: `length`, the number of symbols, must be an integer of at least 1.")


def _check_decay(kernel: Kernel, decay: Any) -> None:
    if not isinstance(decay, numbers.Real) or not 0 < float(decay) <= 1:
        raise ValueError(f"{kernel!r}: `decay` must be a number greater than 0 and at most 1.")
