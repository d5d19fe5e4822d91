"""Finite features per view, so that n is limited by time and not by memory.

Both transformers take `Views` and give `Views` of dense features whose inner products approximate the kernels.
"""

import numbers
import zlib
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state

from .._backend import like, namespace, take_rows, to_numpy
from ..solvers.linalg import is_positive
from ..views import _blocks
from ..views._blocks import Block
from ..views.container import Views
from ..views.estimator import ViewEstimator
from ..views.validation import read_views_to_fit, read_views_to_predict, remember
from .base import Array, Kernel
from .by_view import as_part, kernels_by_view, reads_gram, reference_block, resolve_kernels
from .scalar import RBF, Laplacian

__all__ = ["Nystroem", "RandomFeatures"]


class _Features(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Features of each view by a map that `fit` finds; rows where a view is absent stay absent."""

    kernel: Any
    n_components: float
    random_state: Any

    def _view_is_gram(self, name: str) -> bool:
        return reads_gram(self.kernel, name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    def fit(self, X: Any, y: Any = None) -> "_Features":
        """Find the map of each view.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The training samples.
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted transformer.
        """
        with self._whole(listens=False):
            return self.fit_read(read_views_to_fit(self, X))

    def fit_read(self, X: Views) -> "_Features":
        """Find the map of each view of samples that a learner has read already, whose order is known."""
        if not hasattr(self, "view_names_in_"):
            self._known: dict[str, Any] = {}
            remember(self, X)
        chosen = kernels_by_view(self.kernel, self.view_names_in_)
        self.kernels_ = resolve_kernels({name: chosen[name] for name in X.names}, X)
        self._seed = check_random_state(self.random_state).randint(2**31)
        self._fit_maps(X)
        return self

    def _stream(self, name: str) -> np.random.RandomState:
        """Random numbers of a view's own, so that neither the order of the views nor other views change them."""
        return np.random.RandomState([self._seed, zlib.crc32(name.encode())])

    def transform(self, X: Any) -> Views:
        """Return the features of each view.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        Views
            One dense view of features per view.
        """
        X = read_views_to_predict(self, X)
        blocks = {}
        for name in X.names:
            rows = np.flatnonzero(X.present(name))
            if len(rows) == len(X):
                blocks[name] = self._features(name, X.block(name))
            elif len(rows):
                blocks[name] = _blocks.spread(self._features(name, take_rows(X.block(name), rows)), rows, len(X))
            else:
                blocks[name] = None
        return Views._of(blocks, len(X), X.mask, {})

    def _size(self, n: int) -> int:
        size = self.n_components
        if isinstance(size, numbers.Integral) and size >= 1:
            return int(size)
        if isinstance(size, numbers.Real) and not isinstance(size, numbers.Integral) and 0 < size <= 1:
            return max(1, round(size * n))
        raise ValueError(
            f"{type(self).__name__}: n_components must be a count of at least 1 or a fraction in (0, 1]; got {size!r}."
        )

    @abstractmethod
    def _fit_maps(self, X: Views) -> None: ...

    @abstractmethod
    def _features(self, name: str, block: Block) -> Array: ...


class Nystroem(_Features):
    """Nyström features per view: Φ = K(X, Z) K(Z, Z)^(-1/2) for landmarks Z among the training samples.

    ΦΦ' is the Nyström approximation K(X, Z) K(Z, Z)⁺ K(Z, X) of Williams and Seeger 2001; with all samples as
    landmarks it equals K. With one view and uniform landmarks it is ``sklearn.kernel_approximation.Nystroem`` up to a
    rotation of the features; here directions without weight are dropped, and any kernel of the library serves, on
    strings and trees too.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    n_components : int or float, default=100
        The number of landmarks, or their fraction of the samples.
    landmarks : {"uniform", "kmeans++", "leverage"}, default="uniform"
        How they are drawn: all alike; each next one with probability proportional to the squared distance in feature
        space from those before it (Arthur and Vassilvitskii 2007); or by approximate ridge leverage scores (after
        Musco and Musco 2017).
    shared : bool, default=False
        Whether the views share the landmark samples, drawn among those with every view; where these are too few,
        others are added for the views that they have.
    random_state : int, RandomState or None, default=None
        The seed; each view has random numbers of its own.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    landmark_indices_ : dict of array of int
        The positions of the landmarks among the training samples, by view.

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

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        n_components: float = 100,
        landmarks: str = "uniform",
        shared: bool = False,
        random_state: Any = None,
        views: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.shared = shared
        self.random_state = random_state
        self.views = views

    def _fit_maps(self, X: Views) -> None:
        if self.landmarks not in _DRAWS:
            raise ValueError(f"Nystroem: landmarks must be one of {_blocks.quoted(_DRAWS)}; got {self.landmarks!r}.")
        draw = _DRAWS[self.landmarks]
        if self.shared:
            self.landmark_indices_ = self._shared_landmarks(X, draw)
        else:
            self.landmark_indices_ = {}
            for name in X.names:
                rows = np.flatnonzero(X.present(name))
                pairs = [(self.kernels_[name], take_rows(X.block(name), rows))]
                self.landmark_indices_[name] = rows[draw(pairs, min(self._size(len(X)), len(rows)), self._stream(name))]
        self._landmarks: dict[str, Block] = {}
        self._roots: dict[str, Array] = {}
        for name, chosen in self.landmark_indices_.items():
            block = take_rows(X.block(name), chosen)
            with _blocks.naming(name):
                between = self.kernels_[name](block)
                if self.kernels_[name].may_be_indefinite and not is_positive(to_numpy(between)):
                    raise ValueError(
                        f"{self.kernels_[name]!r} is not positive semi-definite between the landmarks. Use another "
                        "kernel; `consilience.kernels.nearest_psd` makes a matrix positive semi-definite."
                    )
            self._roots[name] = inverse_root(between)
            self._landmarks[name] = reference_block(self.kernels_[name], block)

    def _shared_landmarks(self, X: Views, draw: Any) -> dict[str, np.ndarray]:
        """The same samples for all views: those with every view, and where they are too few others at random."""
        rows = np.arange(len(X)) if X.mask is None else np.flatnonzero(X.mask.all(axis=1))
        size = min(self._size(len(X)), len(X))
        chosen, stream = rows, self._stream("")
        if len(rows) > size:
            pairs = [(self.kernels_[name], take_rows(X.block(name), rows)) for name in X.names]
            chosen = rows[draw(pairs, size, stream)]
        elif len(rows) < size:
            others = stream.permutation(np.setdiff1d(np.arange(len(X)), rows))
            for name in X.names:  # views that no landmark would have come first
                if not X.present(name)[np.append(rows, others[: size - len(rows)])].any():
                    others = others[np.argsort(~X.present(name)[others], kind="stable")]
            chosen = np.sort(np.append(rows, others[: size - len(rows)]))
        found = {name: chosen[X.present(name)[chosen]] for name in X.names}
        for name, own in found.items():
            if not len(own):
                raise ValueError(
                    f"Nystroem: none of the {size} shared landmarks has view '{name}'. Raise n_components: landmarks "
                    "that all views share need a sample of every view."
                )
        return found

    @property
    def sizes(self) -> dict[str, int]:
        """The number of features of each view."""
        return {name: root.shape[1] for name, root in self._roots.items()}

    def _features(self, name: str, block: Block) -> Array:
        return self.kernels_[name](block, self._landmarks[name]) @ self._roots[name]


def inverse_root(W: Array) -> Array:
    """R with RR' = W⁺, one column per direction that carries weight (eigenvalues above p·eps·largest).

    The largest entry of each eigenvector is made positive: its sign is the solver's whim.
    """
    matrix = to_numpy(W)
    eigenvalues, vectors = scipy.linalg.eigh(matrix.astype(np.float64), driver="evd")
    keep = eigenvalues > len(eigenvalues) * np.finfo(matrix.dtype).eps * max(eigenvalues[-1], 0)
    if not keep.any():  # nothing carries weight: one feature that is 0
        return like(np.zeros((len(eigenvalues), 1), matrix.dtype), W)
    vectors = vectors[:, keep]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return like((vectors * signs / np.sqrt(eigenvalues[keep])).astype(matrix.dtype), W)


Pairs = list[tuple[Kernel, Block]]


def _uniform(pairs: Pairs, size: int, rng: np.random.RandomState) -> np.ndarray:
    return np.sort(rng.permutation(pairs[0][1].shape[0])[:size])


def _kmeans_pp(pairs: Pairs, size: int, rng: np.random.RandomState) -> np.ndarray:
    n = pairs[0][1].shape[0]
    diagonals = [to_numpy(kernel.diag(block)) for kernel, block in pairs]
    nearest = np.full(n, np.inf)
    chosen: list[int] = []
    for _ in range(size):
        weights = np.ones(n) if not chosen else nearest.copy()
        weights[chosen] = 0
        if not weights.sum() > 0:  # the rest coincides with landmarks already drawn
            break
        new = int(rng.choice(n, p=weights / weights.sum()))
        chosen.append(new)
        distance = np.zeros(n)
        for (kernel, block), diagonal in zip(pairs, diagonals, strict=True):
            column = to_numpy(kernel(block, take_rows(block, np.array([new]))))[:, 0]
            distance += diagonal - 2 * column + diagonal[new]
        nearest = np.minimum(nearest, np.maximum(distance, 0))
    return np.sort(np.array(chosen))


def _leverage(pairs: Pairs, size: int, rng: np.random.RandomState) -> np.ndarray:
    n = pairs[0][1].shape[0]
    pilot = rng.permutation(n)[: min(n, 2 * size)]
    scores = np.zeros(n)
    for kernel, block in pairs:
        landmarks = take_rows(block, pilot)
        features = to_numpy(kernel(block, landmarks)) @ to_numpy(inverse_root(kernel(landmarks))).astype(np.float64)
        left = np.maximum(to_numpy(kernel.diag(block)) - np.einsum("ij,ij->i", features, features), 0)
        eigenvalues, vectors = scipy.linalg.eigh(features.T @ features)
        tail = eigenvalues[: max(len(eigenvalues) - size, 0)].sum() + left.sum()
        ridge = max(tail / size, np.finfo(float).eps * max(eigenvalues[-1], 1e-300))
        projected = features @ vectors
        captured = np.einsum("ij,ij->i", projected / (np.maximum(eigenvalues, 0) + ridge), projected)
        scores += np.clip(captured + left / ridge, 0, 1)
    scores = np.maximum(scores, 1e-12 * scores.max()) if scores.max() > 0 else np.ones(n)
    return np.sort(rng.choice(n, size=size, replace=False, p=scores / scores.sum()))


_DRAWS = {"uniform": _uniform, "kmeans++": _kmeans_pp, "leverage": _leverage}


class RandomFeatures(_Features):
    """Random Fourier features per view (Rahimi and Recht 2007): φ(x) = sqrt(2/p) cos(W'x + b).

    The columns of W are drawn from the spectral density of the kernel, b uniformly; E φ(x)·φ(z) = k(x, z). For the
    Gaussian kernel W ~ N(0, 2γ), as in ``sklearn.kernel_approximation.RBFSampler``; for the Laplacian kernel the
    entries are Cauchy with scale γ.

    Parameters
    ----------
    kernel : RBF, Laplacian, "rbf", "laplacian" or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get "rbf".
    n_components : int or float, default=100
        The number of features, or their fraction of the samples.
    random_state : int, RandomState or None, default=None
        The seed; each view has random numbers of its own.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.

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

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        n_components: float = 100,
        random_state: Any = None,
        views: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state
        self.views = views

    def _fit_maps(self, X: Views) -> None:
        self._weights: dict[str, Array] = {}
        self._phases: dict[str, Array] = {}
        for name, kernel in self.kernels_.items():
            if not isinstance(kernel, (RBF, Laplacian)):
                raise ValueError(
                    f"View '{name}': random Fourier features are for the kernels RBF and Laplacian; got {kernel!r}. "
                    "Nystroem takes any kernel."
                )
            block, rng = X.block(name), self._stream(name)
            shape = (block.shape[1], self._size(len(X)))
            if isinstance(kernel, RBF):
                weights = rng.normal(scale=np.sqrt(2 * float(kernel.gamma)), size=shape)
            else:
                weights = float(kernel.gamma) * rng.standard_cauchy(size=shape)
            single = str(block.dtype).endswith("float32")
            self._weights[name] = like(weights.astype(np.float32 if single else np.float64), block)
            self._phases[name] = like(
                rng.uniform(0, 2 * np.pi, size=shape[1]).astype(np.float32 if single else np.float64), block
            )

    def _features(self, name: str, block: Block) -> Array:
        weights = self._weights[name]
        angles = block @ weights + self._phases[name]
        return namespace(angles).cos(angles) * float(np.sqrt(2 / weights.shape[1]))
