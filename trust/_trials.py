"""One fit in a hostile condition: what happens, and whether it equals another fit."""

import pickle
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import consilience as cs
from consilience.online._frame import OnlineEstimator
from fuzzing.estimators import frozen
from fuzzing.properties import PACKAGE, attempt

PROVED = ("exact", "converged")


class Trial(NamedTuple):
    """One fit, and what it must equal."""

    model: Any
    X: Any
    y: Any
    weights: Any = None
    new: Any = None  # samples to predict beside the training samples
    classes: Any = None  # of partial_fit
    same: Any = None  # a trial with the same predictions
    at: Any = None  # the samples at which both are compared, for each of them; by default their own
    times: float = 1.0  # of the predictions of `same`
    within: float = 1e-7  # of their largest size
    only: tuple[str, ...] = ()  # outcomes that are right; by default all but a failure


class Outcome(NamedTuple):
    """What happened."""

    mark: str
    text: str = ""


# -- what happens
def is_foreign(model: Any) -> bool:
    """Tell whether an estimator of others does the work."""
    return isinstance(model, (cs.EarlyFusion, cs.LateFusion))


def is_online(model: Any) -> bool:
    """Tell whether the estimator takes steps, so that no optimum is claimed."""
    return isinstance(model, OnlineEstimator)


def try_one(trial: Trial) -> Outcome:
    """Fit, predict and compare; return the outcome."""
    try:
        fitted, outcome = _fit(trial)
        if trial.only and outcome.mark not in trial.only:
            return Outcome("failed", f"{outcome.mark} in silence, where only {trial.only} is right: {outcome.text}")
        if trial.same is not None:
            _compare(trial, fitted, outcome)
        return outcome
    except AssertionError as error:
        return Outcome("failed", str(error))


def _fit(trial: Trial) -> tuple[Any, Outcome]:
    """Return the fitted estimator and the outcome; an AssertionError is a failure."""
    model, foreign = clone(trial.model), is_foreign(trial.model)
    before = _frozen(trial)
    with warnings.catch_warnings(record=True) as told, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        given = {} if trial.weights is None else {"sample_weight": trial.weights}
        if trial.classes is not None:
            call = lambda: model.partial_fit(trial.X, trial.y, classes=trial.classes)  # noqa: E731
        else:
            call = lambda: model.fit(trial.X, trial.y, **given)  # noqa: E731
        _, sentence = attempt(call, doing="in fit", foreign=foreign)
        for rows in (trial.X, trial.new) if sentence is None else ():
            if sentence is None and rows is not None:
                sentence = _check_outputs(model, rows, foreign)
        status = "" if sentence else _check_proof(model)
    assert _frozen(trial) == before, "the input was changed"
    weak = _check_warnings(told, foreign)
    if sentence is not None:
        return model, Outcome("refused", sentence)
    if status in PROVED:
        assert not (weak and not foreign), f"status {status!r}, but a warning says: {weak}"
        return model, Outcome("certified", status)
    silent = status in ("streamed", "delegated", "settled", "shared")
    assert silent or weak, f"status {status!r} without a warning"
    return model, Outcome("warned" if weak else "answered", weak or status)


def _frozen(trial: Trial) -> bytes:
    """Return the bytes of what was given."""
    data = trial.X if isinstance(trial.X, dict) else {name: trial.X[name] for name in trial.X.names}
    return frozen(data, trial.y, trial.weights) + pickle.dumps(trial.model.get_params())


def outputs(model: Any, X: Any) -> np.ndarray:
    """Return scores of a classifier, predictions of others."""
    if isinstance(model, cs.MaxMarginClassifier) and model.fit_intercept:  # the best intercept may not be unique
        return np.asarray(model.view_decision_function(X), dtype=np.float64)
    for name in ("candidate_scores", "decision_function"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X), dtype=np.float64)
    if is_classifier(model) and hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    return np.asarray(model.predict(X), dtype=np.float64)


def _check_outputs(model: Any, X: Any, foreign: bool) -> str | None:
    """Check that predictions are finite and classes known; return the sentence of a refusal."""
    scores, sentence = attempt(lambda: outputs(model, X), doing="in a prediction", foreign=foreign)
    if sentence is not None:
        return str(sentence)
    assert np.isfinite(scores).all(), "predictions are not finite"
    predicted = model.predict(X)
    if is_classifier(model):
        assert np.isin(predicted, model.classes_).all(), "predictions are not classes"
    return None


def _check_proof(model: Any) -> str:
    """Check that a certificate does not contradict itself; return its status."""
    proof = model.certificate()
    assert proof.status in cs.certificates.STATUSES, f"status {proof.status!r}"
    for name in ("objective", "gap", "residual", "bound", "risk", "loss", "norm", "size"):
        value = getattr(proof, name, None)
        assert value is None or not np.isnan(value), f"{name} is NaN, status {proof.status!r}"
    if proof.gap is not None:
        assert np.isfinite(proof.gap), f"gap {proof.gap!r}"
        assert proof.gap >= 0, f"gap {proof.gap!r}"
        assert np.isfinite(proof.objective), f"objective {proof.objective!r}"
    if proof.status in PROVED and proof.gap is not None:
        tol = max(2 * getattr(model, "tol", 0.0), 1e-6)  # what is known of direct solutions
        assert proof.gap <= tol * abs(proof.objective), (
            f"{proof.status}, but the gap is {proof.gap} of {proof.objective}"
        )
    assert str(proof).endswith("."), f"the certificate reads {proof}"
    return str(proof.status)


def _check_warnings(told: list[Any], foreign: bool) -> str:
    """Check that no warning of NumPy or SciPy is given to the user; return what says that a solution is not proved."""
    weak = []
    for each in told:
        text = str(each.message)
        ours = each.filename.startswith(PACKAGE)
        if issubclass(each.category, ConvergenceWarning):
            weak.append(text)
        elif issubclass(each.category, UserWarning):
            assert foreign or text.endswith("."), f"a warning that is not a sentence: {text!r}"
        elif foreign and not ours:  # that of the wrapped estimator
            weak.append(text)
        else:
            raise AssertionError(f"{each.category.__name__} at {Path(each.filename).name}:{each.lineno}: {text}")
    return weak[0] if weak else ""


def _compare(trial: Trial, fitted: Any, outcome: Outcome) -> None:
    """Check that two trials are refused together, or predict the same."""
    other, expected = _fit(trial.same)
    together = (outcome.mark == "refused") == (expected.mark == "refused")
    assert together, f"{outcome.mark} ({outcome.text}), but its equal is {expected.mark} ({expected.text})"
    if outcome.mark == "refused" or "warned" in (outcome.mark, expected.mark):
        return
    here, there = trial.at or (trial.X, trial.same.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, wanted = outputs(fitted, here), trial.times * outputs(other, there)
    size = max(float(np.abs(wanted).max()), 1e-12)
    off = float(np.abs(found - wanted).max()) / size
    assert off <= trial.within, f"differs from its equal by {off:.2g} of {size:.2g}"
