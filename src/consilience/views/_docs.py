"""Descriptions of parameters and attributes that several estimators share.

A class decorated with `shared_docs` writes a line ``{name}`` in its docstring; the text under that name replaces it.
"""

import re
from typing import TypeVar

_T = TypeVar("_T", bound=type)

_TEXTS = {
    # -- parameters
    "kernel": """
kernel : Kernel, str, callable or dict, default="rbf"
    Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf".""",
    "view_weights": """
view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
    Weights of the views: 1 / n_views each; given by name or in the order of the views, negative ones too; or learned
    together with the functions.""",
    "n_components": """
n_components : int or float, optional
    Number of Nyström landmarks of each view, or their fraction of the samples. By default, exact kernels are used.""",
    "n_components_shared": """
n_components : int or float, optional
    Number of Nyström landmarks, the same samples in all views, or their fraction of the samples. By default, exact
    kernels are used.""",
    "n_restarts": """
n_restarts : int, default=5
    Number of starting points for learned weights, the first with equal weights. Another one is tried only if the
    solution is not proved optimal.""",
    "class_weight": """
class_weight : dict or "balanced", optional
    Weights of the classes in the loss, as in scikit-learn.""",
    "unlabeled": """
unlabeled : object, optional
    Label that marks unlabeled samples, in addition to missing values.""",
    "random_state": """
random_state : int, RandomState or None, default=None
    Seed of everything that is drawn at random.""",
    "verbose": """
verbose : bool, default=False
    Whether to show progress while fitting, in a terminal or a notebook.""",
    "views": """
views : dict, list or "prefix", optional
    How one wide table is divided into views; see `as_views`.""",
    "max_iter": """
max_iter : int, default=10
    Maximum number of passes over the samples in `fit`, which stops after the first pass without an update.""",
    "shuffle": """
shuffle : bool, default=True
    Whether `fit` visits the samples in a new random order in each pass.""",
    # -- attributes
    "classes_": """
classes_ : array
    Classes in sorted order.""",
    "view_weights_": """
view_weights_ : array of shape (n_views_used,)
    Weight of each view. Views missing in every training sample are omitted.""",
    "dual_coef_": """
dual_coef_ : array of shape (n_views, n_support, n_outputs)
    Coefficients a_v of f_v(x) = Σ_i k_v(x, x_i) a_v,i; not set with `n_components`.""",
    "support_": """
support_ : array of int
    Positions of the x_i among the samples given to `fit`.""",
    "coef_": """
coef_ : dict of array
    With `n_components`: coefficients of each view's features.""",
    "kernels_": """
kernels_ : dict of Kernel
    Kernels by view, with numbers for all parameters.""",
    "solution_": """
solution_ : Solution
    Objective, gap to the optimum and residual of the optimality conditions.""",
}


def shared_docs(cls: _T) -> _T:
    """Replace each line ``{name}`` of a class's docstring by the shared text of that name."""
    if cls.__doc__ is None:  # python -OO
        return cls

    def text(match: re.Match[str]) -> str:
        lines = _TEXTS[match[2]].strip("\n").split("\n")
        return "\n".join(match[1] + line for line in lines)

    cls.__doc__ = re.sub(r"^( *)\{(\w+)\}$", text, cls.__doc__, flags=re.MULTILINE)
    return cls
