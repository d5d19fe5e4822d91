"""The container for multi-view data; all data are validated once, here.

`Views` stores several views of the same samples. It has rows, so the splitters, searches and pipelines of scikit-learn
work with it unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _blocks, _export
from ._blocks import Block, Gram
from ._construction import as_gram, check_names, named_views, names_of_grams, read_items, read_mask, row_positions
from ._frames import Levels
from ._notebook import views_html, views_table
from ._samples import as_names, pair_views, positions_of
from ._stacking import stacked

__all__ = ["Gram", "Views"]


class Views:
    """Multi-view data: several views of the same samples, with rows.

    Parameters
    ----------
    data : dict, list or Views, optional
        Views by name, or in a list, which names them ``view0``, ``view1``, ... A view is a 2-D array, a sparse matrix,
        a data frame, one numeric column, or a sequence of strings, trees or other objects. Arrays of PyTorch and CuPy
        stay on their device. Integers and booleans become float64; float32 and float64 stay.
    mask : array of bool of shape (n_samples, n_views), or dict of arrays of bool, optional
        True where a view is present. Without a mask, a dense row of only NaN, or `None` in a sequence, is missing.
    precomputed : bool, str or list of str, optional
        Views that are Gram matrices over all samples (True: all views). Selected rows keep the whole Gram matrix.
    sample_names : array-like of shape (n_samples,) or str, optional
        Names of the samples, or the column of data frames that holds them. Default: the index of pandas frames.
    join : {"inner", "outer"}, optional
        Which samples to keep if views have different ones: those of all views, or all of them, with missing views. By
        default, different samples are refused.
    **named : array-like
        Views by keyword: ``Views(audio=A, video=V)``.

    Attributes
    ----------
    names : tuple of str
        Names of the views, in order.
    mask : array of bool of shape (n_samples, n_views) or None
        True where present; None if every view is present in every sample.
    shape : tuple of int
        Number of samples, and number of columns of the widest view.
    feature_names : dict of tuple of str
        Column names of the views that have them.
    categories : dict of dict
        Views with categorical columns -> column -> its categories, in the order of their one-hot columns.
    sample_names : array of shape (n_samples,) or None
        Names of the samples, where they have some.

    Notes
    -----
    Data frames are matched by their index, in the order of the first; an index of 0, 1, 2, ... is not a name. In
    frames, strings and categories become one column per category, such as ``sex=F``; one column of strings is text.
    Where the type of a column lists its categories, all of them become columns, also those that no sample has. A
    missing value is NaN in all columns of its categories. Booleans are one column of 0 and 1.

    ``X[rows]`` selects samples by any index that scikit-learn uses, ``X["audio"]`` returns one view's data, and
    ``X[["audio"]]`` selects views. ``X | Z`` combines the views of both, and `Views.concat` stacks samples. Data are
    copied only if their type or a mask requires it, and never changed. Every sample has at least one view.

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

    _chosen_by_target = False  # whether a preparation of these samples used their target
    _default_index = False  # whether these are the rows of a frame with the index 0, 1, 2, ...

    def __init__(
        self,
        data: Any = None,
        /,
        *,
        mask: Any = None,
        precomputed: bool | str | Sequence[str] | None = None,
        sample_names: Any = None,
        join: str | None = None,
        **named: Any,
    ):
        given = data if isinstance(data, Views) else None
        items = named_views(data if given is None else given._blocks, named)
        if not items:
            raise ValueError("Views needs at least one view; got none. Give arrays by name: Views(audio=A, video=V).")
        if join not in (None, "inner", "outer"):
            raise ValueError(f"`join` is 'inner', 'outer' or None; got {join!r}.")
        self.names: tuple[str, ...] = tuple(items)
        read = read_items(items, sample_names, given)
        self.feature_names: dict[str, tuple[str, ...]] = read.columns
        self.categories: dict[str, Levels] = read.categories
        names = None if sample_names is None or isinstance(sample_names, str) else as_names(sample_names)
        blocks, present, self.sample_names = pair_views(read.blocks, read.present, read.names, names, join)
        defaults = any(own is not None for own in read.names.values()) or (given is not None and given._default_index)
        self._default_index = self.sample_names is None and defaults
        if mask is not None and any(blocks[name] is not read.blocks[name] for name in blocks):
            raise ValueError("`mask` needs views with their samples in one order. Mark missing views by rows of NaN.")
        self._n = _blocks.common_length(blocks)
        if self.sample_names is not None and len(self.sample_names) != self._n:
            raise ValueError(f"`sample_names` has {len(self.sample_names)} names for {self._n} samples. Give one each.")
        self._blocks: dict[str, Block] = blocks
        for name in names_of_grams(precomputed, self.names):
            self._blocks[name] = as_gram(name, self._blocks[self._known(name)])
        in_data = np.column_stack([np.broadcast_to(present[name], self._n) for name in self.names])
        self._set_mask(in_data & read_mask(mask, self.names, self._n))

    # -- construction from validated parts
    @classmethod
    def _of(
        cls,
        blocks: Mapping[str, Block],
        n: int,
        mask: np.ndarray | None,
        feature_names: Mapping[str, tuple[str, ...]],
        sample_names: np.ndarray | None,
        categories: Mapping[str, Levels] | None = None,
        default_index: bool = False,
    ) -> "Views":
        """Return views of blocks that are validated already."""
        self = cls.__new__(cls)
        self._default_index = default_index
        self.names = tuple(blocks)
        self.feature_names = {k: v for k, v in feature_names.items() if k in blocks}
        self.sample_names = sample_names
        self.categories = {k: v for k, v in (categories or {}).items() if k in blocks and v}
        self._blocks = dict(blocks)
        self._n = n
        self.mask = None
        if mask is not None:
            self._set_mask(mask)
        return self

    def _with(self, blocks: Mapping[str, Block], mask: np.ndarray | None, rows: Any = None) -> "Views":
        """Return other blocks with the names of these views, of all samples or of some rows."""
        names = self.sample_names if rows is None or self.sample_names is None else self.sample_names[rows]
        n = self._n if rows is None else rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        default = rows is None and self._default_index
        return Views._of(blocks, n, mask, self.feature_names, names, self.categories, default)

    def _set_mask(self, mask: np.ndarray) -> None:
        """Store which views are present, and blank the others, so that no estimator can read what they held."""
        empty = np.flatnonzero(~mask.any(axis=1))
        if len(empty):
            raise ValueError(
                f"{_blocks.rows_text(empty, self.sample_names)} no view at all (NaN, None or masked in "
                f"{_blocks.quoted(self.names)}). Drop such samples, or give at least one of their views."
            )
        self.mask = None if mask.all() else mask
        if self.mask is not None:
            for v, name in enumerate(self.names):
                self._blocks[name] = _blocks.blank(self._blocks[name], ~self.mask[:, v])

    # -- contents
    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, and number of columns of the widest view."""
        # of Gram matrices that is (n, n), as scikit-learn's cross-validation of precomputed kernels requires
        return (self._n, max(_blocks.width(block) for block in self._blocks.values()))

    def __len__(self) -> int:
        return self._n

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def present(self, name: str) -> np.ndarray:
        """Return, for each sample, whether the view is present.

        Parameters
        ----------
        name : str
            View.

        Returns
        -------
        array of bool of shape (n_samples,)
            True where present.
        """
        v = self.names.index(self._known(name))
        return np.ones(self._n, dtype=bool) if self.mask is None else self.mask[:, v]

    def kind(self, name: str) -> str:
        """Return the kind of a view: ``"dense"``, ``"sparse"``, ``"objects"``, ``"gram"`` or ``"missing"``.

        Parameters
        ----------
        name : str
            View.

        Returns
        -------
        str
            Kind; ``"missing"`` if no sample has the view and its data are not known.
        """
        return _blocks.kind(self._blocks[self._known(name)])

    def block(self, name: str) -> Block:
        """Return one view's data in the form that kernels take: as ``X[name]``, but a `Gram` for a precomputed view.

        Parameters
        ----------
        name : str
            View.

        Returns
        -------
        array, CSR matrix, array of objects, Gram or None
            Data; None if the view is missing in every sample.
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
            raise IndexError(f"Select several views by a list of names, X[['a', 'b']]; got {key!r}.")
        if isinstance(key, tuple) and len(key) == 2:
            rows, columns = key
            if columns is not Ellipsis and not (isinstance(columns, slice) and columns == slice(None)):
                return self._cut(np.ravel(rows), np.ravel(columns))
            key = rows  # X[rows, ...] and X[rows, :]
        if isinstance(key, slice) and key.step in (None, 1):
            return self._between(*key.indices(self._n)[:2])
        rows = row_positions(key, self._n)
        blocks = {name: _blocks.take(block, rows) for name, block in self._blocks.items()}
        return self._with(blocks, None if self.mask is None else self.mask[rows], rows)

    def _between(self, start: int, stop: int) -> "Views":
        """Return consecutive rows, without copies."""
        stop = max(start, stop)
        blocks = {name: _blocks.between(block, start, stop) for name, block in self._blocks.items()}
        return self._with(blocks, None if self.mask is None else self.mask[start:stop], slice(start, stop))

    def __iter__(self) -> Iterator["Views"]:
        return (self[i] for i in range(self._n))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            f"Expected one table, got the views {_blocks.quoted(self.names)}. Select one view by its name, X['name'], "
            "or use an estimator for views such as EarlyFusion or LateFusion."
        )

    def _select(self, names: Sequence[str]) -> "Views":
        if len(set(names)) < len(names):
            raise ValueError(f"A view is selected twice: {_blocks.quoted(names)}. Name each view once.")
        blocks = {name: self.block(name) for name in names}
        mask = None if self.mask is None else self.mask[:, [self.names.index(name) for name in names]]
        return self._with(blocks, mask)

    def _cut(self, rows: np.ndarray, columns: np.ndarray) -> "Views":
        """Return rows and columns of Gram matrices: scikit-learn indexes pairwise data by ``X[np.ix_(rows, columns)]``.

        A `Gram` is indexed by rows alone, since its columns follow its samples.
        """
        if any(isinstance(block, Gram) for block in self._blocks.values()):
            return self[rows]
        blocks = {}
        for name, block in self._blocks.items():
            if block is not None and _blocks.width(block) != self.shape[1]:
                raise IndexError(
                    f"View '{name}' has {_blocks.width(block)} columns, but a Gram matrix of these samples has "
                    f"{self.shape[1]}. Only Gram matrices can be indexed by rows and columns."
                )
            cut = _blocks.take(block, rows)
            blocks[name] = None if cut is None else cut[:, columns]
        names = None if self.sample_names is None else self.sample_names[rows]
        return Views._of(blocks, len(rows), None if self.mask is None else self.mask[rows], {}, names)

    # -- combination
    def __or__(self, other: "Views") -> "Views":
        if not isinstance(other, Views):
            return NotImplemented
        both = [name for name in other.names if name in self._blocks]
        if both:
            raise ValueError(f"Both sides have a view named {_blocks.quoted(both)}. Rename one.")
        if len(self) != len(other):
            raise ValueError(
                f"The left side has {len(self)} samples, the right side {len(other)}. Both must hold the same samples."
            )
        if self.sample_names is not None and other.sample_names is not None:
            other = other[positions_of(self.sample_names, other.sample_names)]
        mask = np.column_stack([X.present(name) for X in (self, other) for name in X.names])
        names = other.sample_names if self.sample_names is None else self.sample_names
        columns = {**self.feature_names, **other.feature_names}
        levels = {**self.categories, **other.categories}
        return Views._of({**self._blocks, **other._blocks}, self._n, mask, columns, names, levels)

    @staticmethod
    def concat(parts: Iterable["Views"]) -> "Views":
        """Stack samples; a view that a part does not have is missing in its rows.

        Parameters
        ----------
        parts : iterable of Views
            Samples to stack. Views and columns are matched by name. Categories that only some parts have are columns
            of zeros in the others.

        Returns
        -------
        Views
            All samples, with every view of every part.

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
            raise ValueError("Views.concat got no parts. Give at least one Views.")
        for X in parts:
            if not isinstance(X, Views):
                raise TypeError(f"Views.concat takes Views; got {type(X).__name__}. Use as_views first.")
        return Views._of(*stacked(parts))

    def align(self, names: Sequence[str]) -> "Views":
        """Return exactly the named views, in this order; an unknown one is missing in every sample.

        Parameters
        ----------
        names : sequence of str
            Views to return; they include all views of X.

        Returns
        -------
        Views
            Same samples with these views.
        """
        unknown = [name for name in self.names if name not in names]
        if unknown:
            raise ValueError(
                f"View {_blocks.quoted(unknown)} is not among the expected views {_blocks.quoted(names)}. Drop or "
                "rename it."
            )
        if tuple(names) == self.names:
            return self
        none = np.zeros(self._n, dtype=bool)
        mask = np.column_stack([self.present(name) if name in self._blocks else none for name in names])
        return self._with({name: self._blocks.get(name) for name in names}, mask)

    def _replaced(
        self,
        blocks: Mapping[str, Block],
        columns: Mapping[str, tuple[str, ...]],
        categories: Mapping[str, Levels] | None = None,
    ) -> "Views":
        """Return the same samples with other data, and other names of columns and categories, of some views."""
        names = {**self.feature_names, **{name: columns[name] for name in columns if name in self._blocks}}
        levels = {**self.categories, **(categories or {})}
        blocks, default = {**self._blocks, **blocks}, self._default_index
        return Views._of(blocks, self._n, self.mask, names, self.sample_names, levels, default)

    def renamed(self, names: Mapping[str, str]) -> "Views":
        """Return the same data with other names.

        Parameters
        ----------
        names : dict
            Old name -> new name; other names stay.

        Returns
        -------
        Views
            Renamed views.

        Examples
        --------
        >>> from consilience import Views
        >>> Views([[[1.0, 2.0]], [[3.0]]]).renamed({"view0": "audio"}).names
        ('audio', 'view1')
        """
        for name in names:
            self._known(name)
        new = [names.get(name, name) for name in self.names]
        check_names(new)
        if len(set(new)) < len(new):
            raise ValueError(f"Two views would have the same name: {_blocks.quoted(new)}. Choose distinct names.")
        columns = {names.get(name, name): own for name, own in self.feature_names.items()}
        levels = {names.get(name, name): own for name, own in self.categories.items()}
        blocks = dict(zip(new, self._blocks.values(), strict=True))
        return Views._of(blocks, self._n, self.mask, columns, self.sample_names, levels, self._default_index)

    def _numbered(self) -> "Views":
        """Return the same samples, with the rows of Gram matrices marked as those given to fit in this order."""
        blocks = {name: b.numbered() if isinstance(b, Gram) else b for name, b in self._blocks.items()}
        return self._with(blocks, self.mask)

    def check_finite(self, names: Sequence[str] | None = None) -> "Views":
        """Raise for NaN or infinite values in views that are present; return self.

        A row of only NaN is a missing view and passes. Impute single values by a transformer, such as
        ``PerView("impute")``.

        Parameters
        ----------
        names : sequence of str, optional
            Views to look at. Default: all.

        Returns
        -------
        Views
            Self.
        """
        for name in self.names if names is None else names:
            block, columns = self.block(name), self.feature_names.get(name)
            _blocks.check_finite(f"View '{name}'", block, self.present(name), self.sample_names, columns)
        return self

    # -- conversion
    def to_frame(self) -> Any:
        """Return all views as one wide table, which ``as_views(frame, views="prefix")`` divides again.

        Returns
        -------
        pandas.DataFrame
            A row per sample, with the sample names as index, and columns named ``view__column``; NaN or None where a
            view is missing.

        Examples
        --------
        >>> from consilience import Views
        >>> list(Views(a=[[1.0, 2.0]], b=[[3.0]]).to_frame().columns)
        ['a__0', 'a__1', 'b__0']
        """
        return _export.to_frame(self)

    def to_mudata(self) -> Any:
        """Return the views as the modalities of a MuData object, each with the samples that have it.

        Returns
        -------
        mudata.MuData
            Matrices with the names of samples and columns.
        """
        return _export.to_mudata(self)

    # -- comparison and display
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Views):
            return NotImplemented
        if self.names != other.names or len(self) != len(other):
            return False
        same_mask = all(np.array_equal(self.present(name), other.present(name)) for name in self.names)
        return same_mask and all(_blocks.equal(self._blocks[name], other._blocks[name]) for name in self.names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        table = views_table(self)
        widths = [max(len(row[j]) for row in table) for j in range(4)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n  ".join([f"Views of {self._n} sample{'s' * (self._n != 1)}", *lines])

    def _repr_html_(self) -> str:
        return views_html(self)
