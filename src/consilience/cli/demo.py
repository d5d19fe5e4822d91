"""The demo: estimators compared on data sets of scikit-learn, and a stream."""

from collections.abc import Iterator

import numpy as np
from sklearn.preprocessing import StandardScaler

from ..datasets import load_breast_cancer_views, load_digits_views
from ..evaluation.comparison import compare
from ..evaluation.progressive import progressive_validation
from ..online.kernelized import KernelPerceptron
from ..online.matrix import OrthogonalPerceptron
from ..online.perceptron import PassiveAggressive
from ..report import Findings, StreamFindings, examine
from ..views.container import Views
from ..views.per_view import PerView

SCALING = 200  # digits that determine the scaling of columns; the stream consists of the others
FEW = ["ConsensusClassifier", "CoRegularizedRidgeClassifierCV", "ViewMetricRidgeClassifierCV", "LateFusion"]


def demo_parts(n_jobs: int | None = None, verbose: bool = False) -> Iterator[Findings | StreamFindings]:
    """Yield findings one after the other: three comparisons and a stream."""

    def compared(title: str, X: Views, y: np.ndarray, estimators: list[str] | None, cv: int) -> Findings:
        board = compare(X, y, estimators=estimators, cv=cv, n_jobs=n_jobs, verbose=verbose)
        return examine(X, y, board, title=title, n_jobs=n_jobs, verbose=verbose)

    X, y = load_breast_cancer_views(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    yield compared("Breast cancer", X, y, None, 4)
    mask = np.random.default_rng(0).random((len(X), len(X.names))) > 1 / 3
    mask[~mask.any(axis=1), 0] = True  # every sample keeps a view
    yield compared("Breast cancer, a third of the views missing", Views(X, mask=mask), y, FEW, 3)
    X, y = load_digits_views(return_X_y=True)
    yield compared("Digits, every third", X[::3], y[::3], None, 3)
    yield _streamed(f"Digits as a stream, scaled by {SCALING} before it", X, y)


def _streamed(title: str, X: Views, y: np.ndarray) -> StreamFindings:
    order = np.random.default_rng(0).permutation(len(y))
    first, rest = order[:SCALING], order[SCALING:]
    X, y = PerView(StandardScaler()).fit(X[first]).transform(X[rest]), y[rest]
    model = KernelPerceptron("rbf")
    result = progressive_validation(model, X, y)
    others = {}
    for other in (OrthogonalPerceptron("rbf", variant="passive-aggressive"), PassiveAggressive("rbf")):
        others[type(other).__name__] = progressive_validation(other, X, y)
    return StreamFindings(title, type(model).__name__, result, model.certificate(X, y), others)
