"""Descriptions of parameters and attributes that several estimators share.

A class decorated with `shared_docs` writes a line ``{name}`` in its docstring; the text under that name replaces it.
"""

import inspect
import re
from types import FunctionType
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Any)

_TEXTS = {
    # -- parameters
    "kernel": """
kernel : Kernel, str, callable or dict, default="rbf"
    Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf".""",
    "kernel_several": """
kernel : Kernel, str, callable, list or dict, default="rbf"
    Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf". With
    ``view_weights="learned"`` a view may have a list of kernels, or "auto" for kernels that suit its training samples
    (`consilience.kernels.auto_kernels`). Each of them then has a function and a weight of its own, as if the view were
    there once for each kernel.""",
    "view_weights": """
view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
    Weights of the views: 1 / n_views each; given by name or in the order of the views, negative ones too; or learned
    together with the functions.""",
    "agreement_penalty": """
agreement_penalty : float, default=0.0
    Penalty on the differences between the views' predictions, on labeled and unlabeled samples, γ_B.""",
    "graph_penalty": """
graph_penalty : float, default=0.0
    Penalty on changes of a view's function along its graph, on labeled and unlabeled samples, γ_W.""",
    "graph": """
graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
    Graph of each view. "kernel" and "kernel_normalized" take the kernel's values as edge weights, with the plain (as
    in the paper) or the normalized Laplacian. "knn" connects the ten nearest neighbors. A callable maps a view's data
    to a Laplacian; an array is a Laplacian over the samples given to `fit`; a dict gives one of these to each view.""",
    "weights_norm": """
weights_norm : float, optional
    Norm of learned weights, of the order `weights_order`. Default: that of uniform weights, 1 / n_views each; with
    several kernels per view 1 / n_kernels each.""",
    "weights_order": """
weights_order : float, optional
    Order q >= 2 of the norm ‖c‖_q of learned weights that is fixed. 2 is the published problem, which tends to leave
    views out. Larger orders keep the weights closer to uniform. Default: 3 (2 for weights_solver="alternating").""",
    "output_kernel": """
output_kernel : array of shape (n_outputs, n_outputs), optional
    Symmetric positive semi-definite matrix R between outputs: the kernel of the vector-valued functions is
    k_v(x, z) R. See `consilience.kernels.multi_task` and `consilience.kernels.output_graph`. Default: identity.""",
    "combination": """
combination : {"average", "separate"}, dict or array, default="average"
    C_v: 1 / n_views times the identity; numbers c_v for c_v times the identity; or a matrix per view, (n_targets,
    n_outputs), by name or in the order of the views. "separate" gives each view targets of its own, in the order of
    the views: tasks with different inputs.""",
    "view_kernel": """
view_kernel : {"diagonal", "covariance"}, array of shape (n_views, n_views) or callable, default="diagonal"
    G_vw(x, z), the kernel of view v of x and view w of z. "diagonal" has k_v between equal views and 0 between others.
    "covariance" is the mean of k_v(x, x_j) k_w(x_j, z) over the training samples (Kadri, Ayache, Capponi, Koço, Dupé
    and Morvant 2013). An array B, positive semi-definite, is B_vw k(x_v, z_w) with one kernel of all views, which have
    the same columns. A callable maps two `Views` to an array of shape (n_views, n_views, n_samples, n_others).""",
    "output_kernel_views": """
output_kernel : array of shape (n_outputs, n_outputs), optional
    Symmetric positive semi-definite matrix R between the outputs of a view. See `consilience.kernels.multi_task` and
    `consilience.kernels.output_graph`. Default: identity.""",
    "operator": """
operator : list of pairs, matrix, LinearOperator or callable, optional
    M, symmetric positive semi-definite, over the values of all views at the samples given to `fit`, view after view. A
    list of pairs (V, L) is the sum of V ⊗ L: V has a row per view or is a view's name, L has a row per sample or is
    None for the identity. A matrix or operator has a row for each view and sample; a callable maps values of shape
    (n_views, n_samples, k) to M times them. Where views are missing it must be 0, unless its pairs are Laplacians of
    single views and equal weights between all views.""",
    "operator_penalty": """
operator_penalty : float, default=1.0
    Penalty on <f, Mf>, γ_I.""",
    "n_components": """
n_components : int, float or "auto", optional
    Number of Nyström landmarks of each view, or their fraction of the samples. "auto" takes exact kernels up to 5,000
    samples if they fit into memory, and 12 √n landmarks for more, at most 2,000. Default: exact kernels.""",
    "n_components_shared": """
n_components : int, float or "auto", optional
    Number of Nyström landmarks, the same samples in all views, or their fraction of the samples. "auto" takes exact
    kernels up to 5,000 samples if they fit into memory, and 12 √n landmarks for more, at most 2,000. By default, exact
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
    "unlabeled_out": """
unlabeled : object, optional
    Label that marks unlabeled samples, in addition to missing values. These samples are left out.""",
    "random_state": """
random_state : int, RandomState or None, default=None
    Seed of everything that is drawn at random. None uses NumPy's global generator, so that fits may differ.""",
    "verbose": """
verbose : bool, default=False
    Whether to show progress while fitting, in a terminal or a notebook.""",
    "views": """
views : dict, list or "prefix", optional
    How one wide table is divided into views; see `as_views`.""",
    "missing_columns": """
missing_columns : {"raise", "fill"}, default="raise"
    What to do at prediction if a view lacks named columns: refuse it, or fill them with their training means.""",
    "max_iter": """
max_iter : int, default=10
    Maximum number of passes over the samples in `fit`, which stops after the first pass without an update.""",
    "shuffle": """
shuffle : bool, default=True
    Whether `fit` visits the samples in a new random order in each pass.""",
    "C": """
C : float, default=1.0
    Weight of the errors.""",
    "combine": """
combine : {"sum", "product"}, Polynomial or list, default="sum"
    How the kernels of the views make one kernel: their sum; their product; ``Polynomial(degree, constant)`` of their
    sum; or products of views with weights, such as ``[("audio", 1.0), (("audio", "video"), 0.5)]``.""",
    "n_components_joint": """
n_components : int, float or "auto", optional
    Number of Nyström landmarks, or their fraction of the samples. "auto" takes exact kernels up to 5,000 samples, and
    12 √n landmarks for more, at most 2,000. By default, exact kernels are used.""",
    "tol_margin": """
tol : float, default=1e-3
    Duality gap to reach, relative to the objective. From 1e-4 on, kernels are evaluated in single precision, unless
    C·k(x, x) is above 100 or rounding prevents the gap.""",
    "max_iter_margin": """
max_iter : int, default=10000
    Maximum number of passes over the samples that violate the optimality conditions.""",
    "cache_size": """
cache_size : float, default=1000
    Memory for stored rows of the kernel, in megabytes.""",
    "warm_start": """
warm_start : bool, default=False
    Whether to start from the coefficients of the last fit, if the number of samples is the same.""",
    "kernel_metric": """
kernel : Kernel, str, callable, list or dict, default="rbf"
    Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf". With
    ``metric="learned"`` or ``"block_sparse"``, or if weights are learned, a view may have a list of kernels, or "auto"
    for kernels that suit its training samples (`consilience.kernels.auto_kernels`). The metric is then between
    kernels, and weights that are not learned are divided equally among the kernels of a view.""",
    "metric": """
metric : {"learned", "block_sparse", "covariance", "diagonal"} or array, default="learned"
    Metric within and between views. "learned" and "block_sparse" are optimized together with the functions, with the
    penalties ‖A‖_F² and Σ_γ ‖A_γ‖_F over pairs of views. "covariance" is A_vw = I/n for all pairs (the paper's
    MVML_Cov). "diagonal" uses the kernels alone, A_vv = K_v⁻¹ (MVML_I). An array is a symmetric positive semi-definite
    matrix with a row for each view and sample given to `fit`, view after view.""",
    "shared_metric": """
shared_metric : bool, default=False
    Whether all outputs share one learned metric. By default, each output has its own, as in the paper. Only for
    ``metric="learned"``.""",
    "view_weights_given": """
view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
    Weights of the views: 1 / n_views each, or given by name or in the order of the views, negative ones too.""",
    "tol_gap": """
tol : float, default=1e-6
    Relative gap at which a solution is accepted.""",
    "max_iter_steps": """
max_iter : int, default=100
    Maximum number of steps of the solver.""",
    # -- attributes
    "classes_": """
classes_ : array
    Classes in sorted order.""",
    "view_weights_": """
view_weights_ : array of shape (n_views_used,)
    Weight of each view. Views missing in every training sample are omitted.""",
    "view_weights_several": """
view_weights_ : array of shape (n_views_used,)
    Weight of each view. Views missing in every training sample are omitted. If a view has several kernels, its weight
    is the sum of their absolute weights, negative if all of them are.
kernel_weights_ : DataFrame
    With several kernels per view: learned weights, in the columns ``view``, ``kernel`` and ``weight``.""",
    "dual_coef_": """
dual_coef_ : array of shape (n_views, n_support, n_outputs)
    Coefficients a_v of f_v(x) = Σ_i k_v(x, x_i) a_v,i; not set with `n_components`.""",
    "dual_coef_several": """
dual_coef_ : array of shape (n_views, n_support, n_outputs)
    Coefficients a_v of f_v(x) = Σ_i k_v(x, x_i) a_v,i; not set with `n_components`. A view with several kernels has a
    row for each, and f_v is the sum of their functions.""",
    "combination_": """
combination_ : array of shape (n_views_used, n_targets, n_outputs)
    C_v of each view. Views missing in every training sample are omitted.""",
    "view_weights_combination": """
view_weights_ : array of shape (n_views_used,)
    c_v where C_v = c_v I for all views; otherwise the size of C_v, its Frobenius norm over √n_targets.""",
    "dual_coef_between": """
dual_coef_ : array of shape (n_views, n_support, n_outputs)
    Coefficients a_w of f_v(x) = Σ_w Σ_i G_vw(x, x_i) a_w,i; with the diagonal and the covariance kernel, of f_v(x) =
    Σ_i k_v(x, x_i) a_v,i.""",
    "dual_coef_margin": """
dual_coef_ : array of shape (n_support,)
    Coefficients α_i of the samples x_i in the support.""",
    "support_": """
support_ : array of int
    Positions of the x_i among the samples given to `fit`.""",
    "coef_": """
coef_ : dict of array
    With `n_components`: coefficients of each view's features.
n_components_ : int or None
    Number of landmarks used; None for exact kernels.""",
    "coef_several": """
coef_ : dict of array
    With `n_components`: coefficients of each view's features; of several kernels under ``"view: kernel"``.
n_components_ : int or None
    Number of landmarks used; None for exact kernels.""",
    "kernels_": """
kernels_ : dict of Kernel
    Kernels by view, with numbers for all parameters.""",
    "kernels_several": """
kernels_ : dict of Kernel
    Kernels by view, with numbers for all parameters; a dict by label for a view with several kernels.""",
    "solution_dual": """
solution_ : Solution
    α as ``x``, the primal objective, the duality gap and the largest violation of the optimality conditions.""",
    "solution_": """
solution_ : Solution
    Objective, gap to the optimum and residual of the optimality conditions.""",
    "metric_": """
metric_ : ViewMetric or None
    Learned metric in factors; None if it was not learned. With several kernels per view it is between kernels.""",
    "active_views_": """
active_views_ : tuple of str
    Views that take part in the predictions.""",
    "dual_coef_metric": """
dual_coef_ : array of shape (n_views, n_samples_used, n_outputs)
    Coefficients g_v of f_v(x) = Σ_i k_v(x, x_i) g_v,i; not set with `n_components`. A view with several kernels has a
    row for each, and f_v is the sum of their functions.""",
    "solution_metric": """
solution_ : Solution
    Objective, gap to the optimum and residual of the optimality conditions. For learned metrics also ``bound``, on the
    empirical Rademacher complexity of functions (f_1 .. f_m), before they are combined, with a metric and a norm no
    larger than these (Huusari, Kadri and Capponi 2018, Theorem 1); the largest over the outputs.""",
    # -- parameters of online estimators
    "stream_kernel": """
kernel : Kernel, str, callable or dict, default="rbf"
    Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf". In a stream,
    "scale" means one over the number of columns, and other parameters must be numbers.""",
    "linear_kernel": """
kernel : Kernel, str, callable or dict, default="linear"
    Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf". With "linear",
    the estimator keeps weights instead of samples. In a stream, "scale" means one over the number of columns.""",
    "stream_combine": """
combine : {"sum", "product"}, Polynomial or list, default="sum"
    How the kernels of the views make one kernel; see `MaxMarginClassifier`. Missing views need "sum".""",
    "average": """
average : {False, True, "recent", "with_last", "voted"}, default=False
    Whether to predict with the last hypothesis, the mean of those that predicted a sample, a mean in which later ones
    count more, the mean of all and the last, or their vote. In "recent", hypothesis t has the weight t(t+1)(t+2)
    (Shamir and Zhang 2013); it suits streams that change.""",
    "ranked_average": """
average : {False, True, "with_last", "voted"}, default=False
    Whether to predict with the last hypothesis, the mean of those that predicted a sample, the mean of these and the
    last, or their vote. `error_curve_` and `n_errors_` count the last hypothesis where outputs are ranked.""",
    "mean": """
average : {False, True, "recent", "with_last"}, default=False
    Whether to predict with the last hypothesis, the mean of those that predicted a sample, a mean in which later ones
    count more (weights t(t+1)(t+2), Shamir and Zhang 2013), or the mean of all and the last.""",
    "regression_mean": """
average : {False, True, "recent", "with_last"}, default="recent"
    Whether to predict with the last hypothesis, the mean of those that predicted a sample, a mean in which later ones
    count more (weights t(t+1)(t+2), Shamir and Zhang 2013), or the mean of all and the last. The last hypothesis fits
    the noise of the last targets. The mean of all keeps the first ones, which were still far from the targets.""",
    "margin": """
margin : float, default=0.0
    Largest margin at which an update is made: of y f(x), or with several classes of the lead over the best other
    class.""",
    "eta0": """
eta0 : float, default=1.0
    Length of an update.""",
    "kernel_intercept": """
fit_intercept : bool, default=False
    Whether to fit an intercept, by adding 1 to the kernel.""",
    "view_intercepts": """
fit_intercept : bool or "auto", default="auto"
    Whether to fit an intercept, by adding a column of ones to each view, or 1 to each kernel. "auto" does so with the
    linear kernel; with others, such as RBF, an intercept takes most of each step. A missing view takes its part of the
    intercept with it.""",
    "budget": """
budget : int, "auto" or None, default="auto"
    Maximum number of samples kept with kernels. When it is exceeded, the oldest is dropped, also from the average, and
    one warning says so. "auto" means 2,000, or no limit with ``average="voted"``, which needs every update. None means
    no limit, as published. Linear estimators keep weights instead of samples, and need no budget.""",
    "prepare": """
prepare : recipe, list of recipes, dict by view or PerView, optional
    Preparation of the views that follows the stream, such as "standardize": each sample is prepared with what is known
    up to this sample. See `PerView`. Default: none.""",
    # -- attributes of online estimators
    "linear_coef_": """
coef_ : dict of array
    With the linear kernel: weights by view, of the last hypothesis or of the mean of all.""",
    "intercept_": """
intercept_ : array of shape (n_outputs,)
    Intercept of each output, of the last hypothesis or of the mean of all; 0 without `fit_intercept`.""",
    "kept_samples_": """
support_, dual_coef_ : array
    With other kernels: positions of the samples kept, and their coefficients.""",
    "n_dropped_": """
n_dropped_ : int
    Number of samples that the budget dropped; with any, no mistake bound is known.""",
    "stream_support_": """
support_ : array of int
    Positions of the samples kept, among those of `fit` or in the stream.""",
    "stream_dual_coef_": """
dual_coef_ : array of shape (n_support,) or (n_classes, n_support)
    Coefficients of the samples kept, signs included.""",
    "counts_": """
n_mistakes_, n_updates_, n_samples_seen_ : int
    Numbers of wrong decisions of the last hypothesis before learning (a tie is one), of updates, and of samples seen.
n_errors_ : int
    Number of wrong predictions before learning, by the hypothesis that `predict` uses. It differs from `n_mistakes_`
    with averages.
n_iter_ : int
    Number of passes that `fit` made; 1 in a stream.
converged_ : bool
    Whether the last pass of `fit` made no update.""",
    "error_curve_": """
error_curve_ : array of shape (n, 2)
    Samples seen, and share of wrong predictions so far (`n_errors_`).""",
    # -- displays
    "ax": """
ax : matplotlib Axes, optional
    Axes to draw on. Default: those of a new figure.""",
    "ax_": """
ax_, figure_ : matplotlib Axes and Figure
    Axes and figure that hold the drawing.""",
    "returns_display": """
Returns
-------
object
    The display, drawn.""",
    "converged_": """
converged_ : bool
    Whether the last pass of `fit` made no update.""",
}

_ENDING = ("shuffle", "random_state", "verbose", "prepare", "views")  # the last parameters of every online estimator
_TEXTS["stream_ending"] = "\n".join(_TEXTS[name].strip("\n") for name in _ENDING)

_SECTIONS: dict[str, dict[str, list[str]]] = {}  # lines of "Parameters" and "Attributes", by class


def _filled(doc: str) -> str:
    """Return a docstring with each line ``{name}`` replaced."""

    def text(match: re.Match[str]) -> str:
        section, _, other = match[2].partition(" of ")
        lines = _SECTIONS[other][section] if other else _TEXTS[section].strip("\n").split("\n")
        return "\n".join(match[1] + line if line else "" for line in lines)

    return re.sub(r"^( *)\{(\w+(?: of \w+)?)\}$", text, doc, flags=re.MULTILINE)


def shared_docs(documented: _T) -> _T:
    """Replace each line ``{name}`` in the docstring of a function, or of a class and its methods.

    A line ``{Parameters of Other}`` or ``{Attributes of Other}`` stands for that section of another class: a
    classifier repeats the list of its regressor and adds its own entries.
    """
    if documented.__doc__ is None:  # python -OO
        return documented
    documented.__doc__ = _filled(documented.__doc__)
    if isinstance(documented, type):
        for method in vars(documented).values():
            method = getattr(method, "__func__", method)  # of a class method
            if isinstance(method, FunctionType) and method.__doc__:
                method.__doc__ = _filled(method.__doc__)
        parts = re.split(r"\n *(\w[\w ]*)\n *-{3,}\n", inspect.cleandoc(documented.__doc__))
        _SECTIONS[documented.__name__] = {
            title: body.rstrip().split("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)
        }
    return documented
