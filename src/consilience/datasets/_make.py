"""Generators of multi-view data with known truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from ..solvers.linalg import svd
from ..views.container import Views

REGRESSION_LATENTS = 2
SHEAR = np.array([[1.0, 1.0], [0.0, 1.0]])
ROTATION_DEGREES = 210.0


@dataclass(frozen=True, eq=False)
class ViewsTruth:
    """Truth about the data of `make_views` and `make_regression_views`.

    Parameters
    ----------
    informative_views, redundant_views, noise_views : tuple of str
        Names of the views of each kind.
    latent : array of shape (n_samples, n_latents)
        Latent variables of the informative views side by side, an equal number for each: the signal without noise.
    target : array of shape (n_samples,) or (n_samples, n_outputs)
        Target without noise; for classification, the labels.

    Examples
    --------
    >>> from consilience.datasets import make_views
    >>> X, y, truth = make_views(informative=2, noise=1, random_state=0, return_truth=True)
    >>> truth.informative_views
    ('informative0', 'informative1')
    >>> truth.latent.shape
    (200, 2)
    """

    informative_views: tuple[str, ...]
    redundant_views: tuple[str, ...]
    noise_views: tuple[str, ...]
    latent: np.ndarray
    target: np.ndarray


_COUNT, _NUMBER = Interval(Integral, 0, None, closed="left"), Interval(Real, 0, None, closed="left")
_CONSTRAINTS: dict[str, list[Any]] = {
    "n_samples": [Interval(Integral, 1, None, closed="left")],
    "informative": [Interval(Integral, 1, None, closed="left")],
    "redundant": [_COUNT],
    "noise": [_COUNT],
    "n_features": [Integral, "array-like"],
    "view_noise": [_NUMBER, "array-like"],
    "missing": [Interval(Real, 0, 1, closed="left")],
    "random_state": ["random_state"],
    "return_X_y": ["boolean"],
    "return_truth": ["boolean"],
}


@validate_params(
    {**_CONSTRAINTS, "n_classes": [Interval(Integral, 2, None, closed="left")], "class_sep": [_NUMBER]},
    prefer_skip_nested_validation=True,
)
def make_views(
    n_samples: int = 200,
    *,
    n_classes: int = 2,
    informative: int = 2,
    redundant: int = 0,
    noise: int = 1,
    n_features: int | Sequence[int] = 10,
    class_sep: float = 1.0,
    view_noise: float | Sequence[float] = 0.3,
    missing: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = True,
    return_truth: bool = False,
) -> Any:
    """Generate classes in informative views, redundant views that repeat their signal, and views of noise.

    Each view `v` is a linear map, with orthonormal rows, of K - 1 latent variables for K classes, plus noise::

        X_v = Z_v W_v + view_noise_v E_v,    W_v W_v' = I,    E_v standard normal.

    The latent variables distinguish the kinds of views:

    - *informative*: Z_v = class_sep C_y R_v + standard normal, independent of the other views given the class y. The
      rows of C are the corners of a regular simplex at distance 2 from each other; R_v is a random orthogonal matrix.
    - *redundant*: Z_v is a random projection of all informative latent variables side by side. It adds nothing to the
      informative views.
    - *noise*: Z_v has the distribution of an informative view, but for permuted classes. It is independent of y.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    n_classes : int, default=2
        Number of classes, with labels 0, 1, ... and sizes that differ by one at most.
    informative, redundant, noise : int, default=2, 0, 1
        Number of views of each kind, in this order; named ``informative0``, ..., ``redundant0``, ..., ``noise0``, ...
    n_features : int or sequence of int, default=10
        Number of columns, for all views or for each.
    class_sep : float, default=1.0
        Half the distance between two class centers in an informative view. The standard deviation within a class is 1.
    view_noise : float or sequence of float, default=0.3
        Standard deviation of the noise in every column, for all views or for each.
    missing : float, default=0.0
        Fraction of the (sample, view) cells that are missing, at random. Every sample keeps at least one view.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn at random.
    return_X_y : bool, default=True
        Whether to return ``(X, y)``; otherwise a Bunch with `data`, `target` and `truth`.
    return_truth : bool, default=False
        Whether to return ``(X, y, truth)``; see `ViewsTruth`.

    Returns
    -------
    tuple or Bunch
        The `Views`, the classes and, with `return_truth`, the truth.

    See Also
    --------
    make_regression_views : The same for regression.

    Notes
    -----
    With two classes and m informative views, the best accuracy is Φ(s √m). Here Φ is the normal distribution function
    and s = class_sep / √(1 + view_noise²). With the default values it is 0.91 for both views and 0.83 for one.

    Examples
    --------
    >>> from consilience.datasets import make_views
    >>> X, y, truth = make_views(300, redundant=1, missing=0.1, random_state=0, return_truth=True)
    >>> X
    Views of 300 samples
      informative0  dense float64  10 columns  present in 264
      informative1  dense float64  10 columns  present in 269
      redundant0    dense float64  10 columns  present in 273
      noise0        dense float64  10 columns  present in 274
    >>> truth.noise_views
    ('noise0',)
    """
    rng = check_random_state(random_state)
    kinds = _Kinds(informative, redundant, noise, n_features, view_noise)
    y = _balanced_labels(rng, n_samples, n_classes)
    latent = np.hstack([_class_latents(rng, y, n_classes, class_sep) for _ in range(informative)])
    unrelated = [_class_latents(rng, rng.permutation(y), n_classes, class_sep) for _ in range(noise)]
    X, truth = kinds.observe(rng, latent, unrelated, y, missing)
    return _as_asked(X, y, truth, return_X_y, return_truth)


@validate_params(
    {**_CONSTRAINTS, "n_outputs": [Interval(Integral, 1, None, closed="left")], "target_noise": [_NUMBER]},
    prefer_skip_nested_validation=True,
)
def make_regression_views(
    n_samples: int = 200,
    *,
    n_outputs: int = 1,
    informative: int = 2,
    redundant: int = 0,
    noise: int = 1,
    n_features: int | Sequence[int] = 10,
    view_noise: float | Sequence[float] = 0.3,
    target_noise: float = 0.1,
    missing: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = True,
    return_truth: bool = False,
) -> Any:
    """Generate a regression target and informative, redundant and noise views; see `make_views`.

    Each view has two latent variables Z_v. Those of informative views are standard normal, and the target is the sum
    of Z_v B_v over them, scaled to variance 1, plus noise. Those of noise views are independent of the target.

    Parameters
    ----------
    n_outputs : int, default=1
        Number of columns of the target.
    target_noise : float, default=0.1
        Standard deviation of the noise in the target.
    n_samples, informative, redundant, noise, n_features, view_noise, missing : optional
        As in `make_views`.
    random_state, return_X_y, return_truth : optional
        As in `make_views`.

    Returns
    -------
    tuple or Bunch
        The `Views`, the target and, with `return_truth`, the truth.

    Examples
    --------
    >>> from consilience.datasets import make_regression_views
    >>> X, y = make_regression_views(100, n_outputs=3, random_state=0)
    >>> X.names, y.shape
    (('informative0', 'informative1', 'noise0'), (100, 3))
    """
    rng = check_random_state(random_state)
    kinds = _Kinds(informative, redundant, noise, n_features, view_noise)
    latent, clean = _regression_latents(rng, n_samples, informative, n_outputs)
    y = clean + target_noise * rng.standard_normal(clean.shape)
    unrelated = [rng.standard_normal((n_samples, REGRESSION_LATENTS)) for _ in range(noise)]
    X, truth = kinds.observe(rng, latent, unrelated, clean, missing)
    return _as_asked(X, y, truth, return_X_y, return_truth)


def make_sheared_views(
    n_samples: int = 200, *, noise: float = 0.0, random_state: int | np.random.RandomState | None = None
) -> tuple[Views, np.ndarray]:
    """Generate the two views of Huusari, Kadri and Capponi (2018), Figure 1: one is a linear map of the other.

    The sizes of the two classes differ by one at most. ``view0`` is normal in the plane, with center (-1, 1) for class
    0 and (1, -1) for class 1. Its standard deviation is 1.2 along (1, 1) and 0.3 along (1, -1). ``view1`` is
    ``view0 @ S' @ R'`` plus normal noise: the shear S = [[1, 1], [0, 1]] followed by the rotation R by 210 degrees.

    In each view a line separates the classes, but no single line through the origin does so in both views. The best
    one is correct for three of five samples. The map moves ``view1`` of one class to the side where ``view0`` has the
    other class. So one linear function for both views fails, while an estimator that learns a metric between the views
    recovers the map. The paper describes the construction in words (a shear mapping followed by a rotation); the
    numbers are ours.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    noise : float, default=0.0
        Standard deviation of the noise in ``view1``. With 0, as in the paper, ``view0`` determines ``view1``.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn at random.

    Returns
    -------
    X : Views
        ``view0`` and ``view1``, two columns each.
    y : array of int of shape (n_samples,)
        The class, 0 or 1.

    Examples
    --------
    >>> from consilience.datasets import make_sheared_views
    >>> X, y = make_sheared_views(random_state=0)
    >>> X
    Views of 200 samples
      view0  dense float64  2 columns
      view1  dense float64  2 columns
    """
    rng = check_random_state(random_state)
    y = _balanced_labels(rng, n_samples, 2)
    along, across = np.array([1.0, 1.0]) / np.sqrt(2), np.array([1.0, -1.0]) / np.sqrt(2)
    # the centers (1, -1) and (-1, 1) are √2 from the origin
    offset = np.where(y == 1, np.sqrt(2), -np.sqrt(2)) + 0.3 * rng.standard_normal(n_samples)
    view0 = np.outer(1.2 * rng.standard_normal(n_samples), along) + np.outer(offset, across)
    angle = np.deg2rad(ROTATION_DEGREES)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    view1 = view0 @ SHEAR.T @ rotation.T + noise * rng.standard_normal((n_samples, 2))
    return Views(view0=view0, view1=view1), y


# -- parts of the generators
class _Kinds:
    """Names, columns and noise of the views of each kind."""

    def __init__(self, informative: int, redundant: int, noise: int, n_features: Any, view_noise: Any):
        counts = {"informative": informative, "redundant": redundant, "noise": noise}
        self.names = {kind: tuple(f"{kind}{i}" for i in range(count)) for kind, count in counts.items()}
        self.order = [name for names in self.names.values() for name in names]
        self.widths = _per_view("n_features", n_features, len(self.order))
        self.levels = _per_view("view_noise", view_noise, len(self.order))

    def observe(
        self,
        rng: np.random.RandomState,
        latent: np.ndarray,
        unrelated: list[np.ndarray],
        clean: np.ndarray,
        missing: float,
    ) -> tuple[Views, ViewsTruth]:
        """Return the views of all kinds, with missing cells, and the truth."""
        informative = len(self.names["informative"])
        d = latent.shape[1] // informative  # latent variables of one view
        projected = [latent @ _orthonormal(rng, latent.shape[1], d) for _ in self.names["redundant"]]
        signals = [*np.split(latent, informative, axis=1), *projected, *unrelated]
        cells = _draw_missing_cells(rng, len(latent), len(self.order), missing)
        X = {}
        for v, name in enumerate(self.order):
            level = float(self.levels[v]) * rng.standard_normal((len(latent), int(self.widths[v])))
            X[name] = signals[v] @ _orthonormal(rng, d, int(self.widths[v])) + level
            X[name][cells[:, v]] = np.nan
        names = self.names["informative"], self.names["redundant"], self.names["noise"]
        return Views(X), ViewsTruth(*names, latent, clean)


def _as_asked(X: Views, y: np.ndarray, truth: ViewsTruth, return_X_y: bool, return_truth: bool) -> Any:
    if not return_X_y:
        return Bunch(data=X, target=y, truth=truth)
    return (X, y, truth) if return_truth else (X, y)


def _per_view(name: str, value: Any, n_views: int) -> np.ndarray:
    values = np.asarray(value)
    if values.ndim and values.shape != (n_views,):
        raise ValueError(
            f"`{name}` must be one number or one for each of the {n_views} views; got shape {values.shape}. The order "
            "is informative, redundant, noise."
        )
    return np.broadcast_to(values, n_views)


def _balanced_labels(rng: np.random.RandomState, n_samples: int, n_classes: int) -> np.ndarray:
    return rng.permutation(np.arange(n_samples) % n_classes)


def _class_latents(rng: np.random.RandomState, y: np.ndarray, n_classes: int, class_sep: float) -> np.ndarray:
    """Return the latent variables of a view: rotated corners of a simplex, 2 `class_sep` apart, plus normal noise."""
    k = np.arange(1, n_classes)
    # Helmert's matrix: row k has k ones, then -k, then zeros; scaled to unit length, so that corners are √2 apart
    helmert = (np.tri(n_classes)[:-1] - np.eye(n_classes)[1:] * k[:, None]) / np.sqrt(k * (k + 1))[:, None]
    rotated = np.sqrt(2) * helmert.T @ _orthonormal(rng, n_classes - 1, n_classes - 1)
    return class_sep * rotated[y] + rng.standard_normal((len(y), n_classes - 1))


def _regression_latents(
    rng: np.random.RandomState, n_samples: int, informative: int, n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    latent = rng.standard_normal((n_samples, informative * REGRESSION_LATENTS))
    weights = rng.standard_normal((informative, REGRESSION_LATENTS, n_outputs))
    # each view contributes the same variance, and the sum has variance 1
    weights /= np.sqrt((weights**2).sum(axis=1, keepdims=True) * informative)
    target = latent @ weights.reshape(-1, n_outputs)
    return latent, target[:, 0] if n_outputs == 1 else target


def _orthonormal(rng: np.random.RandomState, n_rows: int, n_columns: int) -> np.ndarray:
    """Return a random matrix with orthonormal columns, or orthonormal rows if it is wide."""
    # the orthogonal factor of a normal matrix has no preferred direction
    u, _, vt = svd(rng.standard_normal((n_rows, n_columns)))
    return u @ vt


def _draw_missing_cells(rng: np.random.RandomState, n_samples: int, n_views: int, missing: float) -> np.ndarray:
    """Return the missing cells: exactly the given fraction, drawn among all cells but one of each sample."""
    count = round(missing * n_samples * n_views)
    if not 0 <= count <= n_samples * (n_views - 1):
        raise ValueError(
            f"`missing` must lie between 0 and {(n_views - 1) / n_views:.3g}, so that each sample keeps one of its "
            f"{n_views} views; got {missing}. Use a smaller fraction or more views."
        )
    free = np.ones((n_samples, n_views), dtype=bool)
    free[np.arange(n_samples), rng.randint(n_views, size=n_samples)] = False  # the view that a sample keeps in any case
    cells = np.zeros((n_samples, n_views), dtype=bool)
    cells.flat[rng.choice(np.flatnonzero(free), size=count, replace=False)] = True
    return cells
