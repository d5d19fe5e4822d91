"""Views of data that scikit-learn contains, so that no download is needed."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from ..views.container import Views
from ._fetch import Fetched, bunch_or_pair


def load_breast_cancer_views(*, return_X_y: bool = False) -> Fetched:
    """Load the Wisconsin breast cancer data in three views.

    The 569 samples are images of cell nuclei, with ten measures of each nucleus. The views are three summaries over the
    nuclei of an image: the mean (``mean``), its standard error (``error``) and the mean of the three largest values
    (``worst``).

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.

    Returns
    -------
    Bunch or tuple
        `data`, `target` (0 malignant, 1 benign, as in scikit-learn), `target_names`, `feature_names` (view -> list) and
        `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> X
    Views of 569 samples
      mean   dense float64  10 columns
      error  dense float64  10 columns
      worst  dense float64  10 columns
    """
    table = load_breast_cancer()
    columns = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    X = Views({view: table.data[:, chosen] for view, chosen in columns.items()})
    return bunch_or_pair(
        X, table.target, return_X_y, target_names=table.target_names,
        feature_names={view: table.feature_names[chosen].tolist() for view, chosen in columns.items()},
        DESCR="Views `mean`, `error` and `worst` are the columns 0-9, 10-19 and 20-29 of this table.\n\n" + table.DESCR,
    )  # fmt: skip


def load_digits_views(*, return_X_y: bool = False) -> Fetched:
    """Load scikit-learn's handwritten digits in four views.

    The 1797 samples are images of 8 x 8 gray levels, 0 to 16. The views are:

    - ``pixels`` (64): the gray levels.
    - ``profiles`` (46): sums of the gray levels along the 8 rows, the 8 columns, and the 15 diagonals of either
      direction.
    - ``gradients`` (32): in each quarter of the image, a histogram of the gradient's direction in 8 bins, weighted by
      its magnitude and divided between the two nearest bins.
    - ``fourier`` (25): magnitudes of the two-dimensional Fourier transform up to the third frequency, one of each
      conjugate pair, divided by the number of pixels.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.

    Returns
    -------
    Bunch or tuple
        `data`, `target` (the digit), `target_names`, `feature_names` (view -> list) and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> X
    Views of 1797 samples
      pixels     dense float64  64 columns
      profiles   dense float64  46 columns
      gradients  dense float64  32 columns
      fourier    dense float64  25 columns
    """
    digits = load_digits()
    columns = {"pixels": dict(zip(digits.feature_names, digits.data.T, strict=True))}
    images = digits.images
    columns |= {"profiles": _profiles(images), "gradients": _gradients(images), "fourier": _fourier(images)}
    X = Views({view: np.column_stack(list(named.values())) for view, named in columns.items()})
    return bunch_or_pair(
        X, digits.target, return_X_y, target_names=digits.target_names,
        feature_names={view: list(named) for view, named in columns.items()},
        DESCR="Views `profiles`, `gradients` and `fourier` are computed from the images (`pixels`).\n\n" + digits.DESCR,
    )  # fmt: skip


def _profiles(images: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums of the gray levels along four directions."""
    named = {f"row_{i}": images[:, i].sum(axis=1) for i in range(8)}
    named |= {f"column_{j}": images[:, :, j].sum(axis=1) for j in range(8)}
    for direction, turned in {"diagonal": images, "antidiagonal": images[:, :, ::-1]}.items():
        named |= {f"{direction}_{k:+d}": turned.trace(offset=k, axis1=1, axis2=2) for k in range(-7, 8)}
    return named


def _gradients(images: np.ndarray, n_bins: int = 8) -> dict[str, np.ndarray]:
    """Return histograms of gradient directions over the four quarters."""
    down, right = np.gradient(images, axis=(1, 2))
    magnitude = np.hypot(down, right)
    position = np.arctan2(down, right) / (2 * np.pi) * n_bins % n_bins  # in bins, from 0 to n_bins
    named = {}
    for b in range(n_bins):
        distance = np.abs((position - b + n_bins / 2) % n_bins - n_bins / 2)  # around the circle of directions
        votes = magnitude * np.clip(1 - distance, 0, None)
        for i in (0, 1):
            for j in (0, 1):
                quarter = votes[:, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
                named[f"quarter_{i}{j}_direction_{b}"] = quarter.sum(axis=(1, 2))
    return named


def _fourier(images: np.ndarray, highest: int = 3) -> dict[str, np.ndarray]:
    """Return magnitudes of low frequencies (u, v). Those of (-u, -v) and (u, v) are equal, so one of them is kept."""
    magnitude = np.abs(np.fft.fft2(images, norm="forward"))
    frequencies = range(-highest, highest + 1)
    kept = [(u, v) for v in range(highest + 1) for u in frequencies if v > 0 or u >= 0]
    return {f"frequency_{u:+d}{v:+d}": magnitude[:, u, v] for u, v in kept}
