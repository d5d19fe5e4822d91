"""Finite features per view, whose inner products approximate kernels.

Both transformers take `Views` and return `Views` of dense features. Their memory grows with the number of samples, not
with its square.
"""

import zlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from .._backend import cast, is_device_array, like, namespace, take_rows, to_numpy
from ..solvers.linalg import eigh, is_positive, multiply
from ..views import _blocks
from ..views._block_transforms import transformed_blocks
from ..views._blocks import Block
from ..views._docs import shared_docs
from ..views.container import Views
from ..views.estimator import ViewEstimator
from ..views.row_blocks import RowBlocks, RowSample, sample_rows, sample_size
from ..views.validation import read_views_to_fit, read_views_to_learn, read_views_to_predict, remember, store_means
from ._table_features import TableFeatures
from .base import Array, Kernel
from .by_view import as_part, kernels_by_view, reads_gram, reference_block, resolve_kernels
from .scalar import RBF, Laplacian

__all__ = ["Nystroem", "RandomFeatures"]


class _Features(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Features of each view by a map that `fit` finds; a view stays missing in the rows where it is missing."""

    _parameter_constraints: dict[str, list[Any]] = {
        "kernel": [Kernel, str, callable, Mapping],
        "n_components": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="right")],
        "missing_columns": [StrOptions({"raise", "fill"})],
        "random_state": ["random_state"],
    }

    kernel: Any
    n_components: float
    random_state: Any
    _draws_at_once = False  # whether the map needs only the number of columns
    _known: dict[str, Any]
    _categories: dict[str, Any]
    landmark_indices_: dict[str, np.ndarray]

    def _view_is_gram(self, name: str) -> bool:
        return reads_gram(self.kernel, name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    def fit(self, X: Any, y: Any = None) -> "_Features":
        """Find the map of each view.

        Of more than 20,000 samples, fewer where views are wide, a random sample determines the map.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. A fraction as `n_components` needs their number: blocks that do not know it are counted in
            a pass of their own.
        y : ignored
            Not used.

        Returns
        -------
        self
            Fitted transformer.
        """
        self._validate_params()
        with self._restore_on_error(shows_progress=False):
            seed = check_random_state(self.random_state).randint(2**31)
            X, positions, n = self._sample_blocks(X, seed) if isinstance(X, RowBlocks) else self._sample(X, seed)
            return self._fit_views(X, seed, n)._at(positions)

    def _sample(self, X: Any, seed: int) -> tuple[Views, np.ndarray, int]:
        """Return the samples that determine the map, all or some of many, their positions, and the number of all."""
        X = read_views_to_fit(self, X)
        rows = sample_rows(np.arange(len(X)), sample_size(X, self._size(len(X))), seed)
        n = len(X)
        return (X if len(rows) == n else X[rows]), rows, n

    def _sample_blocks(self, blocks: RowBlocks, seed: int) -> tuple[Views, np.ndarray, int]:
        """Return the same of samples that are read block by block; views may appear in any block."""
        sample: RowSample | None = None
        start = 0
        totals: dict[str, tuple[Any, int]] = {}
        known = 0 if isinstance(self.n_components, Integral) else blocks.shape[0]
        for block in blocks:
            X = read_views_to_learn(self, block.X, fresh=not start)
            if sample is None:
                self._known, self._categories = {}, {}
                sample = RowSample(sample_size(X, self._size(known)), seed)
            remember(self, X)
            store_means(self, X, totals)
            sample.add(X, start + np.arange(len(X)))
            start += len(X)
        assert sample is not None  # blocks without samples are refused
        X, positions = sample.rows()
        self._used_views = tuple(name for name in X.names if X.present(name).any())
        return X[list(self._used_views)], positions, start

    def _at(self, positions: np.ndarray) -> "_Features":
        """Set the positions of what was drawn among all samples; return the transformer."""
        return self

    def fit_read(self, X: Views, view_of: Mapping[str, str] | None = None) -> "_Features":
        """Find the map of each view of samples that an estimator has read, whose Gram matrices keep their order.

        Views of X that stand for several kernels of one view, which `view_of` names, have the same random numbers.
        """
        self._validate_params()
        self._view_of = dict(view_of or {})
        self._known = {}
        remember(self, X)
        return self._fit_views(X, check_random_state(self.random_state).randint(2**31), len(X))

    def _fit_views(self, X: Views, seed: int, n: int) -> "_Features":
        """Find the map from samples of the n that were given."""
        by_view = kernels_by_view(self.kernel, self.view_names_in_)
        self.kernels_ = resolve_kernels({name: by_view[name] for name in X.names}, X, validated=True)
        self._seed = seed
        self._fit_maps(X, n)
        return self

    def _random_state_of(self, name: str) -> np.random.RandomState:
        """Return a generator for one view, so that neither the order of the views nor other views change its draws."""
        name = vars(self).get("_view_of", {}).get(name, name)
        # unlike hash(), the same in every process
        return np.random.RandomState([self._seed, zlib.crc32(name.encode())])

    def transform(self, X: Any) -> Any:
        """Return the features of each view.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Samples.

        Returns
        -------
        Views or RowBlocks
            One dense view of features for each view. Those of blocks of rows are computed at each pass, and keep their
            targets and weights.
        """
        if isinstance(X, RowBlocks):
            return transformed_blocks(X, self.transform)
        return self.transform_read(read_views_to_predict(self, X))

    def transform_read(self, X: Views) -> Views:
        """Return the features of validated samples that have all views of `fit`, in the same order."""
        blocks = {}
        for name in X.names:
            rows = np.flatnonzero(X.present(name))
            if len(rows) == len(X):
                blocks[name] = self._features(name, X.block(name))
            elif len(rows):
                blocks[name] = _blocks.place_rows(self._features(name, take_rows(X.block(name), rows)), rows, len(X))
            else:
                blocks[name] = None
        return Views._of(blocks, len(X), X.mask, {}, X.sample_names)

    def of_view(self, name: str) -> TableFeatures:
        """Return the same features of one view as a transformer of its table, for the steps of `PerView`."""
        return TableFeatures(clone(self), name)

    def _size(self, n: int) -> int:
        """Return `n_components` as a number: an integer itself, or a fraction of n samples."""
        size = self.n_components
        return int(size) if isinstance(size, Integral) else max(1, round(size * n))

    @abstractmethod
    def _fit_maps(self, X: Views, n: int) -> None:
        """Find the map of each view from samples of the n that were given; the kernels are resolved."""

    @abstractmethod
    def _features(self, name: str, block: Block) -> Array:
        """Return the features of rows of one view that are present."""


def inverse_root(K: Array) -> Array:
    """Return R with RR' = K⁺, one column per eigenvalue above p · eps times the largest one.

    Smaller eigenvalues of a p x p matrix are rounding error, and their inverse roots would dominate the features. The
    decomposition is in double precision. The largest entry of each eigenvector is made positive, since LAPACK does not
    determine its sign.
    """
    xp = namespace(K)
    eigenvalues, vectors = eigh(cast(K, "float64"), driver="evd")
    e = to_numpy(eigenvalues)
    kept = np.flatnonzero(e > len(e) * float(xp.finfo(K.dtype).eps) * max(e[-1], 0))
    if not len(kept):  # K is zero: one feature that is zero
        return 0 * K[:, :1]
    vectors = vectors[:, kept[0] :]  # eigenvalues ascend
    signs = np.where(to_numpy(xp.max(vectors, axis=0) >= -xp.min(vectors, axis=0)), 1.0, -1.0)
    return cast(vectors * like(signs / np.sqrt(e[kept]), vectors)[None, :], K.dtype)


# -- landmarks of one view, or of several views together, each with its kernel
_Pairs = list[tuple[Kernel, Block]]


def _uniform(pairs: _Pairs, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw samples with equal probability."""
    return np.sort(rng.permutation(pairs[0][1].shape[0])[:size])


def _kmeans_pp(pairs: _Pairs, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw samples one by one, by their squared distance in feature space from the nearest landmark."""
    n = pairs[0][1].shape[0]
    diagonals = [to_numpy(kernel.diag(block)) for kernel, block in pairs]
    nearest = np.full(n, np.inf)
    chosen: list[int] = []
    for _ in range(size):
        weights = np.ones(n) if not chosen else nearest.copy()  # the first landmark is uniform
        weights[chosen] = 0
        if not weights.sum() > 0:  # all other samples equal landmarks
            break
        new = int(rng.choice(n, p=weights / weights.sum()))
        chosen.append(new)
        distance = np.zeros(n)
        for (kernel, block), diagonal in zip(pairs, diagonals, strict=True):
            column = to_numpy(kernel(block, take_rows(block, np.array([new]))))[:, 0]
            distance += diagonal - 2 * column + diagonal[new]  # ‖φ(x) - φ(z)‖², added over the views
        nearest = np.minimum(nearest, np.maximum(distance, 0))  # rounding may make distances negative
    return np.sort(np.array(chosen))


def _leverage(pairs: _Pairs, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw samples by approximate ridge leverage scores, added over the views.

    A uniform pilot of 2 · size landmarks gives features Φ. The score of a sample is φ'(Φ'Φ + λI)⁻¹φ + r/λ, where
    r = k(x, x) - ‖φ‖² is what the pilot misses, and λ is the mass beyond the `size` largest eigenvalues over `size`.
    """
    n = pairs[0][1].shape[0]
    pilot = rng.permutation(n)[: min(n, 2 * size)]
    scores = np.zeros(n)
    for kernel, block in pairs:
        landmarks = take_rows(block, pilot)
        features = multiply(kernel(block, landmarks), cast(inverse_root(kernel(landmarks)), "float64"))
        squares = to_numpy(namespace(features).sum(features * features, axis=1))
        residual = np.maximum(to_numpy(kernel.diag(block)) - squares, 0)
        values, vectors = eigh(features.T @ features)
        eigenvalues = to_numpy(values)
        # mass beyond the `size` largest eigenvalues
        tail = eigenvalues[: max(len(eigenvalues) - size, 0)].sum() + residual.sum()
        ridge = max(tail / size, np.finfo(float).eps * max(eigenvalues[-1], 1e-300))
        projected = features @ vectors
        # φ'(Φ'Φ + λI)⁻¹φ in the basis of eigenvectors
        inverse = like(1 / (np.maximum(eigenvalues, 0) + ridge), projected)
        captured = to_numpy(namespace(projected).sum(projected * inverse * projected, axis=1))
        scores += np.clip(captured + residual / ridge, 0, 1)
    # `size` samples must have a positive probability
    scores = np.maximum(scores, 1e-12 * scores.max()) if scores.max() > 0 else np.ones(n)
    return np.sort(rng.choice(n, size=size, replace=False, p=scores / scores.sum()))


_DRAWS = {"uniform": _uniform, "kmeans++": _kmeans_pp, "leverage": _leverage}


@shared_docs
@dataclass(eq=False, repr=False)
class Nystroem(_Features):
    """Nyström features per view: Φ = K(X, Z) K(Z, Z)^(-1/2) for landmarks Z among the training samples.

    ΦΦ' is the Nyström approximation K(X, Z) K(Z, Z)⁺ K(Z, X) of Williams and Seeger 2001; with all samples as
    landmarks it equals K. With one view and uniform landmarks it equals ``sklearn.kernel_approximation.Nystroem`` up to
    a rotation of the features. Any kernel of the library is accepted, also on strings and trees.

    Parameters
    ----------
    {kernel}
    n_components : int or float, default=100
        Number of landmarks of each view, or their fraction of the samples.
    landmarks : {"uniform", "kmeans++", "leverage"}, default="uniform"
        How to draw the landmarks. "uniform" draws all samples with equal probability. "kmeans++" draws each with
        probability proportional to the squared distance in feature space from the nearest landmark before it (Arthur
        and Vassilvitskii 2007). "leverage" draws by approximate ridge leverage scores (after Musco and Musco 2017).
    shared : bool, default=False
        Whether all views use the same landmark samples, drawn among the samples that have every view. If these are too
        few, other samples are added for the views that they have.
    {random_state}
    {views}
    {missing_columns}

    Attributes
    ----------
    {kernels_}
    landmark_indices_ : dict of array of int
        Positions of the landmarks among the training samples, by view.
    n_components_ : dict of int
        Number of features of each view. It is smaller than the number of landmarks if K(Z, Z) is singular to rounding:
        directions with eigenvalues of at most p · eps times the largest one, for p landmarks, are dropped.

    Notes
    -----
    Each view has its own random numbers, seeded by its name. Adding or reordering views does not change its landmarks.

    Examples
    --------
    >>> from consilience import Nystroem
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> Nystroem(n_components=20, random_state=0).fit_transform(X)
    Views of 569 samples
      mean   dense float64  20 columns
      error  dense float64  20 columns
      worst  dense float64  20 columns
    """

    _parameter_constraints = {
        **_Features._parameter_constraints,
        "landmarks": [StrOptions(set(_DRAWS))],
        "shared": ["boolean"],
    }

    kernel: Any = "rbf"
    _: KW_ONLY
    n_components: float = 100
    landmarks: str = "uniform"
    shared: bool = False
    random_state: Any = None
    views: Any = None
    missing_columns: str = "raise"

    def _at(self, positions: np.ndarray) -> "Nystroem":
        self.landmark_indices_ = {name: positions[own] for name, own in self.landmark_indices_.items()}
        return self

    def _fit_maps(self, X: Views, n: int) -> None:
        draw = _DRAWS[self.landmarks]
        if self.shared:
            self.landmark_indices_ = self._shared_landmarks(X, draw, n)
        else:
            self.landmark_indices_ = {}
            for name in X.names:
                rows = np.flatnonzero(X.present(name))
                pairs = [(self.kernels_[name], take_rows(X.block(name), rows))]
                # a fraction is of all samples, also of those that lack the view
                size = min(self._size(n), len(rows))
                self.landmark_indices_[name] = rows[draw(pairs, size, self._random_state_of(name))]
        self._landmarks: dict[str, Block] = {}
        self._roots: dict[str, Array] = {}
        for name, chosen in self.landmark_indices_.items():
            block = take_rows(X.block(name), chosen)
            with _blocks.naming(name):
                K = self.kernels_[name](block)
                if self.kernels_[name].may_be_indefinite and not is_positive(K):
                    raise ValueError(
                        f"{self.kernels_[name]!r} is not positive semi-definite between the landmarks. Use another "
                        "kernel, or make its matrix positive semi-definite by `consilience.kernels.nearest_psd`."
                    )
            self._roots[name] = inverse_root(K)
            self._landmarks[name] = reference_block(self.kernels_[name], block)

    def _shared_landmarks(self, X: Views, draw: Any, n: int) -> dict[str, np.ndarray]:
        """Return the same samples for all views: those with every view, and other random ones if these are too few."""
        rows = np.arange(len(X)) if X.mask is None else np.flatnonzero(X.mask.all(axis=1))
        size = min(self._size(n), len(X))
        chosen, rng = rows, self._random_state_of("")
        if len(rows) > size:
            pairs = [(self.kernels_[name], take_rows(X.block(name), rows)) for name in X.names]
            chosen = rows[draw(pairs, size, rng)]
        elif len(rows) < size:
            others = rng.permutation(np.setdiff1d(np.arange(len(X)), rows))
            for name in X.names:  # if no landmark had this view, samples that have it come first
                if not X.present(name)[np.append(rows, others[: size - len(rows)])].any():
                    others = others[np.argsort(~X.present(name)[others], kind="stable")]
            chosen = np.sort(np.append(rows, others[: size - len(rows)]))
        by_view = {name: chosen[X.present(name)[chosen]] for name in X.names}
        for name, own in by_view.items():
            if not len(own):
                raise ValueError(
                    f"Nystroem: none of the {size} shared landmarks has view '{name}'. Increase `n_components`, or use "
                    "shared=False."
                )
        return by_view

    @property
    def n_components_(self) -> dict[str, int]:
        """Number of features of each view."""
        return {name: root.shape[1] for name, root in self._roots.items()}

    def _features(self, name: str, block: Block) -> Array:
        K, root = self.kernels_[name]._finite_gram(block, self._landmarks[name]), self._roots[name]
        return K @ root if is_device_array(K) else multiply(root.T, K.T).T  # KR with rows that follow one another


@shared_docs
@dataclass(eq=False, repr=False)
class RandomFeatures(_Features):
    """Random Fourier features per view (Rahimi and Recht 2007): φ(x) = sqrt(2/p) cos(W'x + b).

    The columns of W are drawn from the spectral density of the kernel and b uniformly, so that E φ(x)·φ(z) = k(x, z).
    For the Gaussian kernel W ~ N(0, 2γ), as in ``sklearn.kernel_approximation.RBFSampler``. For the Laplacian kernel
    the entries are Cauchy with scale γ.

    Parameters
    ----------
    kernel : RBF, Laplacian, "rbf", "laplacian" or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf".
    n_components : int or float, default=100
        Number p of features of each view, or their fraction of the samples.
    {random_state}
    {views}
    {missing_columns}

    Attributes
    ----------
    {kernels_}

    Notes
    -----
    Each view has its own random numbers, seeded by its name. Adding or reordering views does not change its features.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import RandomFeatures, Views
    >>> X = Views(a=np.zeros((2, 3)), b=np.ones((2, 4)))
    >>> RandomFeatures(n_components=5, random_state=0).fit_transform(X)
    Views of 2 samples
      a  dense float64  5 columns
      b  dense float64  5 columns
    """

    _draws_at_once = True

    kernel: Any = "rbf"
    _: KW_ONLY
    n_components: float = 100
    random_state: Any = None
    views: Any = None
    missing_columns: str = "raise"

    def _fit_maps(self, X: Views, n: int) -> None:
        self._weights: dict[str, Array] = {}
        self._phases: dict[str, Array] = {}
        for name, kernel in self.kernels_.items():
            if not isinstance(kernel, (RBF, Laplacian)):
                raise ValueError(
                    f"View '{name}': RandomFeatures takes the kernels RBF and Laplacian; got {kernel!r}. Use Nystroem, "
                    "which takes any kernel."
                )
            block, rng = X.block(name), self._random_state_of(name)
            shape = (block.shape[1], self._size(n))  # (columns, features)
            if isinstance(kernel, RBF):
                # Fourier transform of exp(-γ‖x‖²)
                weights = rng.normal(scale=np.sqrt(2 * float(kernel.gamma)), size=shape)
            else:
                weights = float(kernel.gamma) * rng.standard_cauchy(size=shape)  # and of exp(-γ‖x‖₁), column by column
            dtype = np.float32 if _blocks.is_single(block) else np.float64
            self._weights[name] = like(weights.astype(dtype), block)
            self._phases[name] = like(rng.uniform(0, 2 * np.pi, size=shape[1]).astype(dtype), block)

    def _features(self, name: str, block: Block) -> Array:
        weights = self._weights[name]
        angles = block @ weights + self._phases[name]
        return namespace(angles).cos(angles) * float(np.sqrt(2 / weights.shape[1]))
