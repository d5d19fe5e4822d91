"""Learning from several views of the same things: exact, fast, with a proof beside every answer.

The public names load what they need when they are first used, so that importing the package costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_HOME = {
    "Views": "views",
    "as_views": "views",
    "PerView": "preprocessing",
    "Nystroem": "approx",
    "RandomFeatures": "approx",
    "CoRegularizedRidge": "batch.ridge",
    "CoRegularizedRidgeCV": "batch.ridge_cv",
    "CoRegularizedRidgeClassifier": "batch.ridge",
    "CoRegularizedRidgeClassifierCV": "batch.ridge_cv",
    "CoRegularizedSVC": "batch.svc",
    "simplex_codes": "kernels.outputs",
    "ViewMetricRidge": "batch.metric",
    "ViewMetricRidgeCV": "batch.metric_cv",
    "ViewMetricRidgeClassifier": "batch.metric",
    "ViewMetricRidgeClassifierCV": "batch.metric_cv",
    "ViewMetric": "batch._view_metric",
    "MultipleKernelRidge": "batch.kernels_learned",
    "MultipleKernelRidgeClassifier": "batch.kernels_learned",
    "OutputKernelRidge": "batch.kernels_learned",
    "MaxMarginClassifier": "batch.margin",
    "MaxMarginRegressor": "batch.margin_outputs",
    "OnlinePerceptron": "online.perceptron",
    "KernelPerceptron": "online.kernelized",
    "Projectron": "online.kernelized",
    "PassiveAggressive": "online.perceptron",
    "MatrixPerceptron": "online.matrix",
    "OrthogonalPerceptron": "online.matrix",
    "VectorPerceptron": "online.vector",
    "MultiCueClassifier": "online.multicue",
    "EarlyFusion": "batch.fusion",
    "LateFusion": "batch.fusion",
    "LabeledFolds": "model_selection",
    "equal_error_rate": "inspection",
    "roc_points": "inspection",
    "view_agreement": "inspection",
    "view_importances": "inspection",
    "progressive_validation": "streams",
    "AgreementDisplay": "display",
    "GapDisplay": "display",
    "GramDisplay": "display",
    "MetricDisplay": "display",
    "MistakesDisplay": "display",
    "NystroemCurveDisplay": "display",
    "ViewWeightsDisplay": "display",
    "save": "persistence",
    "load": "persistence",
    "check_multiview_estimator": "checks",
}
_MODULES = ("certificates", "comparison", "datasets", "files", "graphs", "kernels", "report", "streams")

__all__ = [*_HOME, *_MODULES]

if TYPE_CHECKING:
    from . import certificates as certificates
    from . import comparison as comparison
    from . import datasets as datasets
    from . import files as files
    from . import graphs as graphs
    from . import kernels as kernels
    from . import report as report
    from . import streams as streams
    from .approx import Nystroem as Nystroem
    from .approx import RandomFeatures as RandomFeatures
    from .batch._view_metric import ViewMetric as ViewMetric
    from .batch.fusion import EarlyFusion as EarlyFusion
    from .batch.fusion import LateFusion as LateFusion
    from .batch.kernels_learned import MultipleKernelRidge as MultipleKernelRidge
    from .batch.kernels_learned import MultipleKernelRidgeClassifier as MultipleKernelRidgeClassifier
    from .batch.kernels_learned import OutputKernelRidge as OutputKernelRidge
    from .batch.margin import MaxMarginClassifier as MaxMarginClassifier
    from .batch.margin_outputs import MaxMarginRegressor as MaxMarginRegressor
    from .batch.metric import ViewMetricRidge as ViewMetricRidge
    from .batch.metric import ViewMetricRidgeClassifier as ViewMetricRidgeClassifier
    from .batch.metric_cv import ViewMetricRidgeClassifierCV as ViewMetricRidgeClassifierCV
    from .batch.metric_cv import ViewMetricRidgeCV as ViewMetricRidgeCV
    from .batch.ridge import CoRegularizedRidge as CoRegularizedRidge
    from .batch.ridge import CoRegularizedRidgeClassifier as CoRegularizedRidgeClassifier
    from .batch.ridge_cv import CoRegularizedRidgeClassifierCV as CoRegularizedRidgeClassifierCV
    from .batch.ridge_cv import CoRegularizedRidgeCV as CoRegularizedRidgeCV
    from .batch.svc import CoRegularizedSVC as CoRegularizedSVC
    from .checks import check_multiview_estimator as check_multiview_estimator
    from .display import AgreementDisplay as AgreementDisplay
    from .display import GapDisplay as GapDisplay
    from .display import GramDisplay as GramDisplay
    from .display import MetricDisplay as MetricDisplay
    from .display import MistakesDisplay as MistakesDisplay
    from .display import NystroemCurveDisplay as NystroemCurveDisplay
    from .display import ViewWeightsDisplay as ViewWeightsDisplay
    from .inspection import equal_error_rate as equal_error_rate
    from .inspection import roc_points as roc_points
    from .inspection import view_agreement as view_agreement
    from .inspection import view_importances as view_importances
    from .kernels.outputs import simplex_codes as simplex_codes
    from .model_selection import LabeledFolds as LabeledFolds
    from .online.kernelized import KernelPerceptron as KernelPerceptron
    from .online.kernelized import Projectron as Projectron
    from .online.matrix import MatrixPerceptron as MatrixPerceptron
    from .online.matrix import OrthogonalPerceptron as OrthogonalPerceptron
    from .online.multicue import MultiCueClassifier as MultiCueClassifier
    from .online.perceptron import OnlinePerceptron as OnlinePerceptron
    from .online.perceptron import PassiveAggressive as PassiveAggressive
    from .online.vector import VectorPerceptron as VectorPerceptron
    from .persistence import load as load
    from .persistence import save as save
    from .preprocessing import PerView as PerView
    from .streams import progressive_validation as progressive_validation
    from .views import Views as Views
    from .views import as_views as as_views


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'consilience' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
