"""Parameters of online estimators: what they may be, and which must stay while a stream is learned."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from ..views._blocks import quoted

# parameters that the state depends on, so they must not change between chunks
FIXED = ("average", "p", "fit_intercept", "budget", "unequal", "prior_norms", "variant", "loss", "prepare_target")

CONSTRAINTS: dict[str, list[Any]] = {  # an estimator validates those of its parameters
    "p": [Interval(Real, 1, None, closed="left")],
    "average": ["boolean", StrOptions({"recent", "with_last", "voted"})],
    "margin": [Interval(Real, 0, None, closed="left")],
    "eta0": [Interval(Real, 0, None, closed="neither")],
    "C": [Interval(Real, 0, None, closed="right")],  # infinity means no limit
    "fit_intercept": ["boolean"],
    "budget": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "shuffle": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["boolean"],
}


def check_parameters(estimator: Any) -> None:
    """Validate parameters; unlike scikit-learn's method, without the signature, which takes long for one sample."""
    constraints = estimator._parameter_constraints
    given = {name: getattr(estimator, name) for name in constraints if hasattr(estimator, name)}
    validate_parameter_constraints(constraints, given, caller_name=type(estimator).__name__)
    if isinstance(given.get("budget"), Integral) and given.get("average") == "voted":  # a vote needs every hypothesis
        raise ValueError(
            f"average='voted' keeps every update, but budget={given['budget']!r} limits them. Use average=True, or "
            "budget=None."
        )


def budget_of(estimator: Any, auto: int = 2000) -> int | None:
    """Return the maximum number of samples kept, where `auto` is that of budget="auto"; None for no limit."""
    if isinstance(estimator.budget, str):
        return None if estimator._averages() == "voted" else auto  # a vote needs every hypothesis
    limit: int | None = estimator.budget
    return limit


def check_fixed(estimator: Any) -> None:
    """Validate that parameters which the state depends on are those that learning began with."""
    for name, before in estimator._began_with.items():
        now = getattr(estimator, name)
        if before is not now and before != now:
            raise ValueError(
                f"`{name}` was {before!r} when learning began and is {now!r} now. Set it back, or start again with "
                "clone(model)."
            )


def check_forgetting(estimator: Any, share: Any, view: str | None) -> None:
    """Validate what an estimator is asked to forget."""
    if not (isinstance(share, Real) and 0 <= float(share) <= 1):
        raise ValueError(f"`share` must be a number from 0 to 1; got {share!r}.")
    if view is not None and view not in estimator.view_names_in_:
        raise ValueError(f"There is no view '{view}'; the views are {quoted(estimator.view_names_in_)}.")
    if estimator._averages() == "voted":
        raise ValueError("average='voted' keeps every hypothesis and cannot forget. Use average=True.")
