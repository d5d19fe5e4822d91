"""The preparation of each view in a model, in words."""

from typing import Any

from sklearn.impute import SimpleImputer
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from ..evaluation._wrappers import steps_of
from ..views._blocks import some
from ..views.batch_effects import RemoveBatch
from ..views.per_view import PerView
from ..views.recipes import ColumnSelection, LogColumns, MostVariable, chained_steps


def preparation_words(model: Any) -> dict[str, str]:
    """Return what the steps of a fitted model do with each view before the final estimator, in their order."""
    words: dict[str, list[str]] = {}
    for step in steps_of(model)[:-1]:
        if isinstance(step, PerView):
            for view, transformer in step.transformers_.items():
                words.setdefault(view, []).extend(_words_of(transformer))
        elif isinstance(step, RemoveBatch):
            text = f"effects of {len(step.batches_)} batches ({some(step.batches_, 5)}) removed"
            for view in step.effects_:
                words.setdefault(view, []).append(text)
        else:
            for view in getattr(step, "view_names_in_", ("all views",)):
                words.setdefault(view, []).append(type(step).__name__)
    return {view: "; ".join(parts) for view, parts in words.items() if parts}


def _words_of(transformer: Any) -> list[str]:
    if transformer is None or isinstance(transformer, str):
        return ["not used"] if transformer == "drop" else []
    return [_word(step) for step in chained_steps(transformer)]


def _word(step: Any) -> str:
    if isinstance(step, StandardScaler):
        return "standardized" if step.with_mean else "divided by the standard deviation of each column"
    if isinstance(step, SimpleImputer) and step.strategy == "mean":
        return "single missing values filled with the mean"
    if isinstance(step, LogColumns):
        return "log(1 + x)"
    if isinstance(step, QuantileTransformer) and step.output_distribution == "normal":
        return "mapped to a normal distribution by ranks"
    if isinstance(step, ColumnSelection):
        by = "the largest variance" if isinstance(step, MostVariable) else "the strongest association with the target"
        return f"{int(step.support_.sum()):,} of {len(step.support_):,} columns kept, those with {by}"
    return type(step).__name__
