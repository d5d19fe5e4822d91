"""Learning from several views of the same samples, with exact solvers and a certificate for every fit.

Public names load their module when they are first used, so that importing the package is fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    "_backend": ["to_numpy"],
    "views": ["RowBlocks", "Views", "as_views"],
    "views.per_view": ["PerView"],
    "views.batch_effects": ["RemoveBatch"],
    "kernels.features": ["Nystroem", "RandomFeatures"],
    "kernels.outputs": ["simplex_vectors"],
    "batch.banded_ridge": ["BandedRidgeCV"],
    "batch.consensus": ["ConsensusClassifier", "ConsensusRegressor"],
    "batch.coregularized": ["CoRegularizedRidge", "CoRegularizedRidgeClassifier"],
    "batch.coregularized_cv": ["CoRegularizedRidgeCV", "CoRegularizedRidgeClassifierCV"],
    "batch.svc": ["CoRegularizedSVC"],
    "batch.vector_valued": ["VectorValuedClassifier", "VectorValuedRegressor"],
    "batch.metric": ["ViewMetricRidge", "ViewMetricRidgeClassifier"],
    "batch.metric_cv": ["ViewMetricRidgeCV", "ViewMetricRidgeClassifierCV"],
    "batch._view_metric": ["ViewMetric"],
    "batch.multiple_kernel": [
        "MultipleKernelRidge",
        "MultipleKernelRidgeClassifier",
        "OutputKernelRidge",
        "OutputKernelRidgeClassifier",
    ],
    "batch.max_margin": ["MaxMarginClassifier"],
    "batch.max_margin_outputs": ["MaxMarginRegressor"],
    "batch.fusion": ["EarlyFusion", "LateFusion"],
    "online._predictions": ["StreamPredictions"],
    "online.perceptron": ["OnlinePerceptron", "PassiveAggressive"],
    "online.kernelized": ["KernelPerceptron", "Projectron"],
    "online.regression": ["PassiveAggressiveRegressor"],
    "online.matrix": ["MatrixPerceptron", "OrthogonalPerceptron"],
    "online.vector": ["VectorPerceptron"],
    "online.ranking": ["RankingPerceptron"],
    "online.multicue": ["MultiCueClassifier"],
    "online.serving": ["Snapshot"],
    "io": ["Samples", "load", "read_blocks", "read_samples", "read_stream", "save", "shareable"],
    "evaluation.comparison": ["Comparison", "Difference", "Leaderboard", "candidates", "compare", "default_kernels"],
    "evaluation.splitting": ["LabeledKFold"],
    "evaluation.inspection": ["certificate", "equal_error_rate", "view_agreement", "view_importances"],
    "evaluation.importances": ["FeatureImportances", "feature_importances"],
    "evaluation.external": ["ExternalEvaluation", "evaluate_external"],
    "evaluation.drift": ["ADWIN"],
    "evaluation.monitoring": ["DriftEvent", "StreamMonitor"],
    "evaluation.progressive": ["ProgressiveResult", "StreamOptions", "progressive_validation"],
    "evaluation.displays": [
        "AgreementDisplay",
        "FeatureImportancesDisplay",
        "GramDisplay",
        "MetricDisplay",
        "ViewWeightsDisplay",
    ],
    "evaluation.output_displays": ["BandedR2Display"],
    "evaluation.curves": ["GapDisplay", "MistakesDisplay", "NystroemCurveDisplay"],
    "evaluation.checks": ["check_multiview_estimator"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {
    "certificates": "solvers.certificates",
    "datasets": "datasets",
    "evaluation": "evaluation",
    "graphs": "kernels.graphs",
    "io": "io",
    "kernels": "kernels",
    "report": "report",
}

__all__ = [*_HOME, *_MODULES]

if TYPE_CHECKING:
    from . import datasets, evaluation, io, kernels, report
    from ._backend import to_numpy
    from .batch._view_metric import ViewMetric
    from .batch.banded_ridge import BandedRidgeCV
    from .batch.consensus import ConsensusClassifier, ConsensusRegressor
    from .batch.coregularized import CoRegularizedRidge, CoRegularizedRidgeClassifier
    from .batch.coregularized_cv import CoRegularizedRidgeClassifierCV, CoRegularizedRidgeCV
    from .batch.fusion import EarlyFusion, LateFusion
    from .batch.max_margin import MaxMarginClassifier
    from .batch.max_margin_outputs import MaxMarginRegressor
    from .batch.metric import ViewMetricRidge, ViewMetricRidgeClassifier
    from .batch.metric_cv import ViewMetricRidgeClassifierCV, ViewMetricRidgeCV
    from .batch.multiple_kernel import (
        MultipleKernelRidge,
        MultipleKernelRidgeClassifier,
        OutputKernelRidge,
        OutputKernelRidgeClassifier,
    )
    from .batch.svc import CoRegularizedSVC
    from .batch.vector_valued import VectorValuedClassifier, VectorValuedRegressor
    from .evaluation.checks import check_multiview_estimator
    from .evaluation.comparison import Comparison, Difference, Leaderboard, candidates, compare, default_kernels
    from .evaluation.curves import GapDisplay, MistakesDisplay, NystroemCurveDisplay
    from .evaluation.displays import (
        AgreementDisplay,
        FeatureImportancesDisplay,
        GramDisplay,
        MetricDisplay,
        ViewWeightsDisplay,
    )
    from .evaluation.drift import ADWIN
    from .evaluation.external import ExternalEvaluation, evaluate_external
    from .evaluation.importances import FeatureImportances, feature_importances
    from .evaluation.inspection import certificate, equal_error_rate, view_agreement, view_importances
    from .evaluation.monitoring import DriftEvent, StreamMonitor
    from .evaluation.output_displays import BandedR2Display
    from .evaluation.progressive import ProgressiveResult, StreamOptions, progressive_validation
    from .evaluation.splitting import LabeledKFold
    from .io import Samples, load, read_blocks, read_samples, read_stream, save, shareable
    from .kernels import graphs
    from .kernels.features import Nystroem, RandomFeatures
    from .kernels.outputs import simplex_vectors
    from .online._predictions import StreamPredictions
    from .online.kernelized import KernelPerceptron, Projectron
    from .online.matrix import MatrixPerceptron, OrthogonalPerceptron
    from .online.multicue import MultiCueClassifier
    from .online.perceptron import OnlinePerceptron, PassiveAggressive
    from .online.ranking import RankingPerceptron
    from .online.regression import PassiveAggressiveRegressor
    from .online.serving import Snapshot
    from .online.vector import VectorPerceptron
    from .solvers import certificates
    from .views import RowBlocks, Views, as_views
    from .views.batch_effects import RemoveBatch
    from .views.per_view import PerView


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'consilience' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
