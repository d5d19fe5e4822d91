"""Multi-view data: what it is, how it enters, validated once, here.

`Views` holds the same samples seen several ways. It is a container with rows, so every tool of scikit-learn that
splits, searches or pipes rows works on it unchanged.
"""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, to_numpy
from . import _blocks, _reading, _tables
from ._blocks import Block, Gram

__all__ = ["Gram", "Views", "as_views"]


class Views:
    """The same samples seen in several ways: multi-view data with rows.

    Parameters
    ----------
    data : dict, list or Views, optional
        The views by name, or in a list (then named ``view0``, ``view1``, ...). A view is a 2-D array (NumPy, or
        PyTorch and CuPy, which stay on their device), a sparse matrix, a data frame, one column of numbers, or a
        sequence of strings, trees or other objects. Integers and booleans become float64; float32 and float64 stay.
    mask : array of bool of shape (n_samples, n_views), or dict of arrays of bool, optional
        True where a view is present. A dense row of NaN only, or `None` in a sequence, is absent without being told.
    precomputed : bool, str or list of str, optional
        The views that are Gram matrices over all samples (True: all of them). Rows then keep the whole Gram.
    **named : array-like
        Views by keyword: ``Views(audio=A, video=V)``.

    Attributes
    ----------
    names : tuple of str
        The names of the views, in order.
    mask : array of bool of shape (n_samples, n_views) or None
        True where present; None when every view is present in every sample.
    shape : tuple of int
        Samples, and the columns of the widest view.
    feature_names : dict of tuple of str
        The column names of the views that came with names.

    Notes
    -----
    ``X[rows]`` takes samples by any index scikit-learn uses, ``X["audio"]`` gives one view's data, ``X[["audio"]]``
    selects views, ``X | Z`` puts the views of both side by side, `Views.concat` stacks samples. Data are not copied
    unless their type or a mask asks for it, and never changed. Every sample has at least one view.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Views
    >>> X = Views(audio=np.ones((3, 2)), text=["a", "b", None])
    >>> X
    Views of 3 samples
      audio  dense float64  2 columns
      text   objects        1 column   present in 2
    >>> X[[0, 2]].mask
    array([[ True,  True],
           [ True, False]])
    """

    def __init__(
        self,
        data: Any = None,
        /,
        *,
        mask: Any = None,
        precomputed: bool | str | Sequence[str] | None = None,
        **named: Any,
    ):
        items, feature_names = _named_views(data, named)
        if not items:
            raise ValueError("Views need at least one view; got none. Give arrays by name: Views(audio=A, video=V).")
        self.names: tuple[str, ...] = tuple(items)
        self.feature_names: dict[str, tuple[str, ...]] = dict(feature_names)
        self._blocks: dict[str, Block] = {}
        present = []
        for name, value in items.items():
            block, columns, rows = _reading.read(name, value)
            self._blocks[name] = block
            present.append(rows)
            if columns is not None:
                self.feature_names[name] = columns
        self._n = _blocks.common_length(self._blocks)
        self._set_precomputed(precomputed)
        found = np.column_stack([np.broadcast_to(rows, self._n) for rows in present])
        if isinstance(data, Views) and data.mask is not None:
            found[:, : len(data.names)] &= data.mask
        self._set_mask(found & _read_mask(mask, self.names, self._n))

    # -- construction from parts already read
    @classmethod
    def _of(
        cls, blocks: Mapping[str, Block], n: int, mask: np.ndarray | None, feature_names: Mapping[str, tuple[str, ...]]
    ) -> "Views":
        self = cls.__new__(cls)
        self.names = tuple(blocks)
        self.feature_names = {k: v for k, v in feature_names.items() if k in blocks}
        self._blocks = dict(blocks)
        self._n = n
        self._set_mask(np.ones((n, len(blocks)), dtype=bool) if mask is None else mask)
        return self

    def _set_precomputed(self, precomputed: bool | str | Sequence[str] | None) -> None:
        if precomputed is None or precomputed is False:
            return
        chosen = self.names if precomputed is True else [precomputed] if isinstance(precomputed, str) else precomputed
        for name in chosen:
            block = self._blocks[self._known(name)]
            if isinstance(block, Gram):
                continue
            if len(block.shape) != 2 or block.shape[0] != block.shape[1]:
                raise ValueError(
                    f"View '{name}' is to be precomputed, so it must be a square Gram matrix over all samples; got "
                    f"{_blocks.shape_text(block)}. Give the Gram of all samples together and take rows from the Views."
                )
            self._blocks[name] = Gram(block.toarray() if sp.issparse(block) else block)

    def _set_mask(self, mask: np.ndarray) -> None:
        empty = np.flatnonzero(~mask.any(axis=1))
        if len(empty):
            raise ValueError(
                f"{_blocks.rows_text(empty)} no view at all (NaN, None or masked in {_blocks.quoted(self.names)}). "
                "Drop such samples or give at least one of their views."
            )
        self.mask: np.ndarray | None = None if mask.all() else mask
        if self.mask is not None:
            for v, name in enumerate(self.names):
                self._blocks[name] = _blocks.blank(self._blocks[name], ~self.mask[:, v])

    # -- what it holds
    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, and the number of columns of the widest view."""
        return (self._n, max(_blocks.width(block) for block in self._blocks.values()))

    def __len__(self) -> int:
        return self._n

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def present(self, name: str) -> np.ndarray:
        """Return, for each sample, whether the view is there.

        Parameters
        ----------
        name : str
            A view.

        Returns
        -------
        array of bool of shape (n_samples,)
            True where present.
        """
        v = self.names.index(self._known(name))
        return np.ones(self._n, dtype=bool) if self.mask is None else self.mask[:, v]

    def kind(self, name: str) -> str:
        """Return what a view is: ``"dense"``, ``"sparse"``, ``"objects"``, ``"gram"`` or ``"absent"``.

        Parameters
        ----------
        name : str
            A view.

        Returns
        -------
        str
            The kind.
        """
        return _blocks.kind(self._blocks[self._known(name)])

    def block(self, name: str) -> Block:
        """Return one view's data as kernels take it: as ``X[name]``, but a `Gram` for a precomputed view.

        Parameters
        ----------
        name : str
            A view.

        Returns
        -------
        array, CSR matrix, array of objects, Gram or None
            The data; None where the view is absent in every sample.
        """
        return self._blocks[self._known(name)]

    def _known(self, name: str) -> str:
        if name not in self._blocks:
            raise KeyError(f"No view is named {name!r}; the views are {_blocks.quoted(self.names)}.")
        return name

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            block = self.block(key)
            return block.block(block) if isinstance(block, Gram) else block
        if isinstance(key, list) and key and all(isinstance(k, str) for k in key):
            return self._select(key)
        if isinstance(key, tuple) and any(isinstance(k, str) for k in key):
            raise IndexError(f"Several views are selected by a list of names, X[['a', 'b']]; got {key!r}.")
        if isinstance(key, tuple) and len(key) == 2:
            rows, columns = key
            if columns is not Ellipsis and not (isinstance(columns, slice) and columns == slice(None)):
                return self._cut(np.ravel(rows), np.ravel(columns))
            key = rows  # X[rows, ...] and X[rows, :]
        if isinstance(key, slice) and key.step in (None, 1):
            return self._between(*key.indices(self._n)[:2])
        rows = _row_positions(key, self._n)
        blocks = {name: _blocks.take(block, rows) for name, block in self._blocks.items()}
        mask = None if self.mask is None else self.mask[rows]
        return Views._of(blocks, len(rows), mask, self.feature_names)

    def _between(self, start: int, stop: int) -> "Views":
        """Rows that follow each other, without copies."""
        stop = max(start, stop)
        blocks = {name: _blocks.between(block, start, stop) for name, block in self._blocks.items()}
        return Views._of(blocks, stop - start, None if self.mask is None else self.mask[start:stop], self.feature_names)

    def __iter__(self) -> Iterator["Views"]:
        return (self[i] for i in range(self._n))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            f"One table is needed here, and these are the views {_blocks.quoted(self.names)}. Take one by its name, "
            "X['name'], or put a learner for views (EarlyFusion, LateFusion, ...) in this place."
        )

    def _select(self, names: Sequence[str]) -> "Views":
        if len(set(names)) < len(names):
            raise ValueError(f"A view is selected twice: {_blocks.quoted(names)}.")
        blocks = {name: self.block(name) for name in names}
        mask = None if self.mask is None else self.mask[:, [self.names.index(name) for name in names]]
        return Views._of(blocks, self._n, mask, self.feature_names)

    def _cut(self, rows: np.ndarray, columns: np.ndarray) -> "Views":
        """Rows and columns of Gram matrices, as scikit-learn asks of pairwise data by ``X[np.ix_(rows, columns)]``.

        Views that know a Gram matrix as such are cut by rows alone: their columns are samples by themselves.
        """
        if any(isinstance(block, Gram) for block in self._blocks.values()):
            return self[rows]
        blocks = {}
        for name, block in self._blocks.items():
            if block is not None and _blocks.width(block) != self.shape[1]:
                raise IndexError(
                    f"View '{name}' has {_blocks.width(block)} columns, not {self.shape[1]} as a Gram matrix beside "
                    "the others would; only Gram matrices can be cut by rows and columns."
                )
            cut = _blocks.take(block, rows)
            blocks[name] = None if cut is None else cut[:, columns]
        return Views._of(blocks, len(rows), None if self.mask is None else self.mask[rows], {})

    # -- putting together
    def __or__(self, other: "Views") -> "Views":
        if not isinstance(other, Views):
            return NotImplemented
        both = [name for name in other.names if name in self._blocks]
        if both:
            raise ValueError(f"Both sides have a view named {_blocks.quoted(both)}; rename one.")
        if len(self) != len(other):
            raise ValueError(f"The left side has {len(self)} samples, the right side {len(other)}; they must agree.")
        mask = np.column_stack([X.present(name) for X in (self, other) for name in X.names])
        blocks = {**self._blocks, **other._blocks}
        return Views._of(blocks, self._n, mask, {**self.feature_names, **other.feature_names})

    @staticmethod
    def concat(parts: Iterable["Views"]) -> "Views":
        """Stack samples; a view that a part does not have is absent in its rows.

        Parameters
        ----------
        parts : iterable of Views
            The samples to stack. Views are matched by name.

        Returns
        -------
        Views
            All samples, with every view that occurs in a part.

        Examples
        --------
        >>> import numpy as np
        >>> from consilience import Views
        >>> Views.concat([Views(a=np.ones((2, 1))), Views(b=np.ones((1, 3)))]).mask
        array([[ True, False],
               [ True, False],
               [False,  True]])
        """
        parts = list(parts)
        if not parts:
            raise ValueError("Nothing to stack: give at least one Views.")
        for X in parts:
            if not isinstance(X, Views):
                raise TypeError(f"Views are stacked with Views; got {type(X).__name__}. Use as_views first.")
        names = list(dict.fromkeys(name for X in parts for name in X.names))
        aligned = [X.align(names) for X in parts]
        sizes = [len(X) for X in parts]
        blocks = {name: _blocks.stack(name, [X._blocks[name] for X in aligned], sizes) for name in names}
        mask = np.vstack([np.column_stack([X.present(name) for name in names]) for X in aligned])
        feature_names: dict[str, tuple[str, ...]] = {}
        for X in parts:
            for name, columns in X.feature_names.items():
                if feature_names.setdefault(name, columns) != columns:
                    raise ValueError(f"View '{name}' has its columns in another order, or others, in different parts.")
        return Views._of(blocks, sum(sizes), mask, feature_names)

    def align(self, names: Sequence[str]) -> "Views":
        """Return the views in the given order; one that is not here is absent in every sample.

        Parameters
        ----------
        names : sequence of str
            The views wanted.

        Returns
        -------
        Views
            The same samples with exactly these views.
        """
        unknown = [name for name in self.names if name not in names]
        if unknown:
            raise ValueError(
                f"View {_blocks.quoted(unknown)} is not among the views expected here: {_blocks.quoted(names)}."
            )
        if tuple(names) == self.names:
            return self
        none = np.zeros(self._n, dtype=bool)
        mask = np.column_stack([self.present(name) if name in self._blocks else none for name in names])
        return Views._of({name: self._blocks.get(name) for name in names}, self._n, mask, self.feature_names)

    def renamed(self, names: Mapping[str, str]) -> "Views":
        """Return the same data with other names.

        Parameters
        ----------
        names : dict
            Old name -> new name; the others stay.

        Returns
        -------
        Views
            The renamed views.

        Examples
        --------
        >>> from consilience import Views
        >>> Views([[[1.0, 2.0]], [[3.0]]]).renamed({"view0": "audio"}).names
        ('audio', 'view1')
        """
        for name in names:
            self._known(name)
        new = [names.get(name, name) for name in self.names]
        _check_names(new)
        if len(set(new)) < len(new):
            raise ValueError(f"Two views would have one name: {_blocks.quoted(new)}.")
        feature_names = {names.get(name, name): columns for name, columns in self.feature_names.items()}
        return Views._of(dict(zip(new, self._blocks.values(), strict=True)), self._n, self.mask, feature_names)

    def _numbered(self) -> "Views":
        """The same samples, the rows of Gram matrices known from now on as those given to fit, in this order."""
        blocks = {name: b.numbered() if isinstance(b, Gram) else b for name, b in self._blocks.items()}
        return Views._of(blocks, self._n, self.mask, self.feature_names)

    def check_finite(self) -> "Views":
        """Refuse single NaN or infinite values; return self.

        A row of NaN only is an absent view and passes. Filling single values is a choice that a transformer makes:
        ``PerView(SimpleImputer())``.

        Returns
        -------
        Views
            Itself.
        """
        for name, block in self._blocks.items():
            _blocks.check_finite(f"View '{name}'", block, self.present(name))
        return self

    # -- comparing and showing
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Views):
            return NotImplemented
        if self.names != other.names or len(self) != len(other):
            return False
        same_mask = all(np.array_equal(self.present(name), other.present(name)) for name in self.names)
        return same_mask and all(_blocks.equal(self._blocks[name], other._blocks[name]) for name in self.names)

    __hash__ = None  # type: ignore[assignment]

    def _table(self) -> list[tuple[str, str, str, str]]:
        rows = []
        for name, block in self._blocks.items():
            kind = _blocks.kind(block)
            if kind in ("dense", "sparse"):
                kind += " " + str(block.dtype).rpartition(".")[2]
            width = _blocks.width(block)
            there = int(self.present(name).sum())
            columns = "" if kind == "absent" else f"{width} column{'s' * (width != 1)}"
            rows.append((name, kind, columns, "" if there == self._n else f"present in {there}"))
        return rows

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(len(row[j]) for row in table) for j in range(4)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n  ".join([f"Views of {self._n} sample{'s' * (self._n != 1)}", *lines])

    def _repr_html_(self) -> str:
        head = "<tr><th>view</th><th>kind</th><th>columns</th><th>present rows</th></tr>"
        body = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{kind}</td><td>{_blocks.width(self._blocks[name])}</td>"
            f"<td>{int(self.present(name).sum())} of {self._n}</td></tr>"
            for name, kind, _, _ in self._table()
        )
        return f"<table><caption>Views of {self._n} samples</caption><thead>{head}</thead><tbody>{body}</tbody></table>"


def as_views(
    X: Any,
    views: Any = None,
    *,
    mask: Any = None,
    precomputed: bool | str | Sequence[str] | None = None,
) -> Views:
    """Read any multi-view data as `Views`: the one way data enter.

    Parameters
    ----------
    X : Views, dict, list, data frame, array, sparse matrix or sequence of strings
        Several views (`Views`, a dict, a list of 2-D arrays), or one wide table to be divided by `views`. A plain 2-D
        array or a sequence of strings is one view. A list of lists of strings is several views; samples that are
        lists of words are given by name: ``{"words": [["the", "cat"], ["a", "dog"]]}``.
    views : dict, list or "prefix", optional
        How a wide table is divided: a dict of name -> columns, or a list of columns, where columns are a slice, a
        list of positions, a mask, or names; or ``"prefix"``: the column ``audio__mfcc1`` belongs to the view
        ``audio``.
    mask : array of bool of shape (n_samples, n_views), or dict of arrays of bool, optional
        True where a view is present.
    precomputed : bool, str or list of str, optional
        The views that are Gram matrices.

    Returns
    -------
    Views
        The data; `X` itself when it already is one and nothing is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import as_views
    >>> as_views(np.ones((4, 5)), views={"audio": slice(0, 3), "video": [3, 4]})
    Views of 4 samples
      audio  dense float64  3 columns
      video  dense float64  2 columns
    """
    if isinstance(X, Views):
        if views is not None:
            raise ValueError(f"`views` divides one wide table; the data given are already {len(X.names)} views.")
        if mask is None and precomputed is None:
            return X
        return Views(X, mask=mask, precomputed=precomputed)
    if views is not None:
        return Views(_tables.divide(X, views), mask=mask, precomputed=precomputed)
    if is_mapping(X) or _tables.is_list_of_views(X):
        return Views(X, mask=mask, precomputed=precomputed)
    return Views({"view0": _tables.one_table(X)}, mask=mask, precomputed=precomputed)


def to_float64(X: Views) -> Views:
    """Return the same samples with single precision made double, but for Gram matrices and arrays of devices."""
    blocks = {}
    for name in X.names:
        block = X.block(name)
        ours = X.kind(name) in ("dense", "sparse") and not is_device_array(block)
        blocks[name] = block.astype(np.float64) if ours and block.dtype == np.float32 else block
    return Views._of(blocks, len(X), X.mask, X.feature_names)


# -- names, masks, rows
def is_mapping(X: Any) -> bool:
    """Tell a dict of views from scipy's sparse dicts of keys."""
    return isinstance(X, Mapping) and not sp.issparse(X)


def _named_views(data: Any, named: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    feature_names: dict[str, tuple[str, ...]] = {}
    if isinstance(data, Views):
        items = dict(data._blocks)
        feature_names = data.feature_names
    elif is_mapping(data):
        items = dict(data)
    elif data is None:
        items = {}
    elif isinstance(data, (list, tuple)):
        items = {f"view{v}": value for v, value in enumerate(data)}
    else:
        raise TypeError(
            f"Views are made of a dict or list of arrays, or of keywords; got {type(data).__name__}. "
            "For one table use as_views(table, views=...)."
        )
    _check_names(items)
    twice = [name for name in named if name in items]
    if twice:
        raise ValueError(f"View {_blocks.quoted(twice)} is given twice.")
    return {**items, **named}, feature_names


def _check_names(names: Iterable[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"The names of views are strings; got {name!r}.")


def _read_mask(mask: Any, names: tuple[str, ...], n: int) -> np.ndarray:
    full = np.ones((n, len(names)), dtype=bool)
    if mask is None:
        return full
    if isinstance(mask, Mapping):
        unknown = [name for name in mask if name not in names]
        if unknown:
            raise ValueError(f"`mask` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}.")
        for name, rows in mask.items():
            there = np.asarray(rows)
            if there.shape != (n,) or there.dtype != bool:
                raise ValueError(
                    f"`mask` of view '{name}' must be booleans of shape ({n},); got {there.dtype} of shape "
                    f"{there.shape}."
                )
            full[:, names.index(name)] = there
        return full
    array = np.asarray(mask)
    if array.shape != full.shape or array.dtype != bool:
        raise ValueError(
            f"`mask` must be booleans of shape {full.shape}, samples by views, True where present; got {array.dtype} "
            f"of shape {array.shape}."
        )
    return array.copy()


def _row_positions(key: Any, n: int) -> np.ndarray:
    if isinstance(key, slice):
        return np.arange(n)[key]
    if is_device_array(key):
        key = to_numpy(key)
    rows = np.asarray(key)
    if rows.size == 0:
        return np.empty(0, dtype=int)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise IndexError(f"A mask of rows must have shape ({n},); got {rows.shape}.")
        return np.flatnonzero(rows)
    if rows.dtype.kind not in "iu":
        raise IndexError(f"Rows are taken by integers, booleans or slices, views by names; got {key!r}.")
    if rows.ndim > 1:
        raise IndexError(f"Rows are taken by a list of positions; got an index of shape {rows.shape}.")
    rows = np.atleast_1d(rows)
    outside = rows[(rows >= n) | (rows < -n)]
    if len(outside):
        raise IndexError(f"Row {outside[0]} is out of range: there are {n} samples.")
    return np.where(rows < 0, rows + n, rows)
