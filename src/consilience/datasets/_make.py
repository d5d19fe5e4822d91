"""Seeded multi-view data whose truth is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import helmert
from sklearn.utils import Bunch, check_random_state

from ..views.container import Views

REGRESSION_LATENTS = 2
SHEAR = np.array([[1.0, 1.0], [0.0, 1.0]])
ROTATION_DEGREES = 210.0


@dataclass(frozen=True, eq=False)
class ViewsTruth:
    """What `make_views` knows about the data it made.

    Parameters
    ----------
    informative_views, redundant_views, noise_views : tuple of str
        The names of the views, by what they carry.
    latent : array of shape (n_samples, n_latents)
        The clean signal: the latent variables of the informative views side by side, an equal number for each.
    target : array of shape (n_samples,) or (n_samples, n_outputs)
        The target without noise; for classes, the labels themselves.

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


def make_views(
    n_samples: int = 200,
    *,
    n_classes: int | None = 2,
    informative: int = 2,
    redundant: int = 0,
    noise: int = 1,
    n_features: int | Sequence[int] = 10,
    n_outputs: int = 1,
    class_sep: float = 1.0,
    view_noise: float | Sequence[float] = 0.3,
    target_noise: float = 0.1,
    missing: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = True,
    return_truth: bool = False,
) -> Any:
    """Make views that carry a part of the signal each, views that repeat it, and views that carry nothing.

    Every view `v` shows d latent variables through a random map with orthonormal rows, under noise of its own::

        X_v = Z_v W_v + view_noise_v E_v,    W_v W_v' = I,    E_v standard normal.

    What the latent variables are makes the kind of view:

    - *informative*: Z_v is the view's own part of the signal, independent of the others' given the target. With
      K classes, d = K - 1 and Z_v = class_sep C_y R_v + standard normal, where the rows of C are the corners of a
      regular simplex at distance 2 from each other and R_v is a random orthogonal matrix. In regression, d = 2, Z_v is
      standard normal and the target is the sum over the views of Z_v B_v, scaled to variance one, plus noise.
    - *redundant*: Z_v is a random d-dimensional projection of all informative latent variables side by side, so that
      nothing in it is new beside all informative views.
    - *noise*: Z_v is drawn like an informative view's, for targets of its own: alike in law, and without any relation
      to the target.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    n_classes : int or None, default=2
        Number of classes, as even in size as can be, labels 0, 1, ...; None for regression.
    informative, redundant, noise : int, default=2, 0, 1
        Number of views of each kind, in this order; named ``informative0``, ..., ``redundant0``, ..., ``noise0``, ...
    n_features : int or sequence of int, default=10
        Columns of every view, or of each.
    n_outputs : int, default=1
        Columns of the regression target.
    class_sep : float, default=1.0
        Half the distance between two class centres in one informative view; the spread within a class is one.
    view_noise : float or sequence of float, default=0.3
        Standard deviation of the noise in every column, for all views or for each.
    target_noise : float, default=0.1
        Standard deviation of the noise in the regression target, whose signal has variance one.
    missing : float, default=0.0
        Fraction of the (sample, view) cells that are absent, at random; every sample keeps at least one view.
    random_state : int, RandomState or None, default=None
        Seed.
    return_X_y : bool, default=True
        Return ``(X, y)``; False: a Bunch with `data`, `target` and `truth`.
    return_truth : bool, default=False
        Return ``(X, y, truth)``, see `ViewsTruth`.

    Returns
    -------
    tuple or Bunch
        The `Views`, the target and, where asked for, the truth.

    Notes
    -----
    With two classes and m informative views the best accuracy is Φ(s √m), Φ the normal distribution function and
    s = class_sep / √(1 + view_noise²): with the default values 0.91 for both views together, 0.83 for one alone.

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
    _check_counts(n_samples, n_classes, informative, redundant, noise)
    rng = check_random_state(random_state)
    kinds = {"informative": informative, "redundant": redundant, "noise": noise}
    names = {kind: tuple(f"{kind}{i}" for i in range(count)) for kind, count in kinds.items()}
    order = [name for kind in kinds for name in names[kind]]
    widths = _per_view("n_features", n_features, len(order))
    levels = _per_view("view_noise", view_noise, len(order))

    if n_classes is None:
        latent, clean = _regression_latents(rng, n_samples, informative, n_outputs)
        y = clean + target_noise * rng.standard_normal(clean.shape)
        idle = [rng.standard_normal((n_samples, REGRESSION_LATENTS)) for _ in range(noise)]
    else:
        y = clean = _balanced_labels(rng, n_samples, n_classes)
        latent = np.hstack([_class_latents(rng, y, n_classes, class_sep) for _ in range(informative)])
        idle = [_class_latents(rng, rng.permutation(y), n_classes, class_sep) for _ in range(noise)]
    d = latent.shape[1] // informative
    projected = [latent @ _orthonormal(rng, latent.shape[1], d) for _ in range(redundant)]
    signals = [*np.split(latent, informative, axis=1), *projected, *idle]

    absent = _absent_cells(rng, n_samples, len(order), missing)
    X = {}
    for v, name in enumerate(order):
        X[name] = _show(rng, signals[v], int(widths[v]), float(levels[v]))
        X[name][absent[:, v]] = np.nan
    truth = ViewsTruth(names["informative"], names["redundant"], names["noise"], latent, clean)
    views = Views(X)
    if not return_X_y:
        return Bunch(data=views, target=y, truth=truth)
    return (views, y, truth) if return_truth else (views, y)


def make_sheared_views(
    n_samples: int = 200, *, noise: float = 0.0, random_state: int | np.random.RandomState | None = None
) -> tuple[Views, np.ndarray]:
    """Make the two-view toy of Huusari, Kadri and Capponi (2018), Figure 1: one view is a linear map of the other.

    Two classes of (as nearly as can be) equal size. ``view0`` is normal in the plane, with centre (-1, 1) for class 0
    and (1, -1) for class 1, and standard deviation 1.2 along (1, 1) and 0.3 along (1, -1). ``view1`` is ``view0 @ S' @
    R'``, the shear S = [[1, 1], [0, 1]] followed by the rotation R by 210 degrees, plus normal noise.

    A line separates the classes in each view, but no one line through the origin does so in both (the best is right for
    three of five rows), because the map carries ``view1`` of one class to the side where ``view0`` has the other. One
    linear function for all views fails; a learner that finds the relation between the views, a metric across them,
    recovers the map and needs one line only. The paper gives the construction in words (a shear mapping followed by a
    rotation); the numbers are ours.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    noise : float, default=0.0
        Standard deviation of noise added to ``view1``; 0 as in the paper: the view is made from the other completely.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : Views
        ``view0`` and ``view1``, two columns each.
    y : array of int of shape (n_samples,)
        The class, 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.datasets import make_sheared_views
    >>> X, y = make_sheared_views(random_state=0)
    >>> A, *_ = np.linalg.lstsq(X["view0"], X["view1"])
    >>> bool(np.allclose(X["view0"] @ A, X["view1"]))
    True
    """
    rng = check_random_state(random_state)
    y = _balanced_labels(rng, n_samples, 2)
    along, across = np.array([1.0, 1.0]) / np.sqrt(2), np.array([1.0, -1.0]) / np.sqrt(2)
    offset = np.where(y == 1, np.sqrt(2), -np.sqrt(2)) + 0.3 * rng.standard_normal(n_samples)
    view0 = np.outer(1.2 * rng.standard_normal(n_samples), along) + np.outer(offset, across)
    angle = np.deg2rad(ROTATION_DEGREES)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    view1 = view0 @ SHEAR.T @ rotation.T + noise * rng.standard_normal((n_samples, 2))
    return Views(view0=view0, view1=view1), y


# -- the parts of make_views -------------------------------------------------------------------------------------------
def _check_counts(n_samples: int, n_classes: int | None, informative: int, redundant: int, noise: int) -> None:
    if n_samples < 1:
        raise ValueError(f"`n_samples` must be 1 or more; got {n_samples}.")
    if n_classes is not None and n_classes < 2:
        raise ValueError(f"`n_classes` must be 2 or more; got {n_classes}. Use None for regression.")
    if informative < 1 or redundant < 0 or noise < 0:
        raise ValueError(
            "`informative` must be 1 or more, `redundant` and `noise` 0 or more; "
            f"got {informative}, {redundant} and {noise}. Without an informative view there is no signal."
        )


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
    """One view's latent variables: turned simplex corners, two `class_sep` apart, and a spread of one."""
    corners = np.sqrt(2) * helmert(n_classes).T  # rows at distance 2
    turned = corners @ _orthonormal(rng, n_classes - 1, n_classes - 1)
    return class_sep * turned[y] + rng.standard_normal((len(y), n_classes - 1))


def _regression_latents(
    rng: np.random.RandomState, n_samples: int, informative: int, n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    latent = rng.standard_normal((n_samples, informative * REGRESSION_LATENTS))
    weights = rng.standard_normal((informative, REGRESSION_LATENTS, n_outputs))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True) * np.sqrt(informative)  # equal parts, variance one
    target = latent @ weights.reshape(-1, n_outputs)
    return latent, target[:, 0] if n_outputs == 1 else target


def _orthonormal(rng: np.random.RandomState, n_rows: int, n_columns: int) -> np.ndarray:
    """A random matrix with orthonormal columns, or orthonormal rows where it is wide."""
    u, _, vt = np.linalg.svd(rng.standard_normal((n_rows, n_columns)), full_matrices=False)
    return u @ vt


def _show(rng: np.random.RandomState, signal: np.ndarray, width: int, level: float) -> np.ndarray:
    noise = level * rng.standard_normal((len(signal), width))
    return signal @ _orthonormal(rng, signal.shape[1], width) + noise


def _absent_cells(rng: np.random.RandomState, n_samples: int, n_views: int, missing: float) -> np.ndarray:
    """Exactly the fraction asked for, drawn among all cells but one protected cell of each sample."""
    count = round(missing * n_samples * n_views)
    if not 0 <= count <= n_samples * (n_views - 1):
        raise ValueError(
            f"`missing` must lie between 0 and {(n_views - 1) / n_views:.3g}, so that each sample keeps one of its "
            f"{n_views} views; got {missing}. Lower it or add views."
        )
    free = np.ones((n_samples, n_views), dtype=bool)
    free[np.arange(n_samples), rng.randint(n_views, size=n_samples)] = False
    absent = np.zeros((n_samples, n_views), dtype=bool)
    absent.flat[rng.choice(np.flatnonzero(free), size=count, replace=False)] = True
    return absent
