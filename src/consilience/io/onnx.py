"""Export of linear online models to ONNX: a graph that other runtimes predict with."""

from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..online._calibration import REACH
from ..online._classes import ClassTargets
from ..online._frame import OnlineEstimator
from ..online._linear import LinearMachine
from ..views._blocks import quoted
from ..views.running import RunningImputer, RunningScaler

__all__ = ["to_onnx"]

_OPSET = 17  # of 2022, which all runtimes of today read
_IR = 8
_LABELS = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_}


def to_onnx(model: Any) -> Any:
    """Return a linear online model as an ONNX graph, for runtimes without Python.

    The graph has one input for each view, a table of doubles with the view's name; a row of NaN is a missing view. Its
    outputs are ``label`` and, where the model has them, ``probabilities`` in the order of `classes_`. A regression has
    one output, ``prediction``, of a column for each target. A mean of hypotheses is exported as its weights.

    The recipes "impute" and "standardize" of `prepare` become part of the graph, with the statistics of the samples so
    far. The model itself also counts the sample that it predicts. After n samples, its prepared values differ from the
    graph's by a share of about 1/n.

    Parameters
    ----------
    model : online estimator
        A fitted `OnlinePerceptron` with p = 2, `PassiveAggressive`, `PassiveAggressiveRegressor`,
        `OrthogonalPerceptron` or `MatrixPerceptron`, with linear kernels. It has no votes, and one label per sample.

    Returns
    -------
    onnx.ModelProto
        The graph. ``SerializeToString()`` gives the bytes of a file.

    See Also
    --------
    save : Write a model for this library.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.OnlinePerceptron().partial_fit({"a": [[1.0], [-1.0]]}, ["up", "down"])
    >>> graph = cs.io.to_onnx(model)  # doctest: +SKIP
    >>> open("model.onnx", "wb").write(graph.SerializeToString())  # doctest: +SKIP
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("Export to ONNX needs the package onnx: pip install 'consilience[onnx]'.") from error
    machine = _linear_machine(model)
    graph = _Graph(onnx)
    columns, W = machine.columns, machine.weights()
    total = graph.constant(np.zeros(machine.n_outputs) if columns.ones else machine.intercepts())
    for l, name in enumerate(columns.offsets):
        own = W[columns.span(name), l if columns.shared else 0]
        total = graph.op("Add", total, _view_scores(graph, model, name, own[columns.ones :], own[: columns.ones]))
    if is_regressor(model):
        graph.op("Identity", total, out="prediction")
        graph.output("prediction", np.float64, [None, machine.n_outputs])
    else:
        _add_outputs(graph, model, total)
    opset = onnx.helper.make_opsetid("", _OPSET)
    made = onnx.helper.make_graph(graph.nodes, type(model).__name__, graph.inputs, graph.outputs, graph.constants)
    result = onnx.helper.make_model(made, opset_imports=[opset], ir_version=_IR, producer_name="consilience",
                                    producer_version=__version__)  # fmt: skip
    onnx.checker.check_model(result)
    return result


def _linear_machine(model: Any) -> LinearMachine:
    """Return the machine of a model that can be exported; raise for others."""
    if not isinstance(model, OnlineEstimator):
        raise TypeError(f"`to_onnx` takes online estimators; got {type(model).__name__}. Use skl2onnx for others.")
    check_is_fitted(model, "n_samples_seen_")
    machine, who = model._machine, type(model).__name__
    if type(machine) is not LinearMachine or hasattr(model, "estimators_"):
        raise TypeError(
            f"{who} is not linear with these parameters, so it cannot be exported. Use linear kernels, p = 2 and no "
            "votes, or features such as prepare=RandomFeatures() outside of the graph."
        )
    if getattr(model, "unequal", None) == "repeat":
        raise TypeError("unequal='repeat' repeats columns, which the graph does not do. Use unequal='pad'.")
    if is_regressor(model):
        return machine
    if not isinstance(model._targets, ClassTargets):
        raise TypeError(
            f"{who} has learned several labels per sample, which the graph does not have. Export one class."
        )
    if len(model.classes_) < 2 or not machine.columns.offsets:
        raise ValueError(f"{who} has learned fewer than two classes. Export it after more samples.")
    if model.classes_.dtype.kind not in _LABELS:
        raise TypeError(f"ONNX has no labels of type {model.classes_.dtype}. Use numbers or strings.")
    return machine


class _Graph:
    """Nodes, constants, inputs and outputs of a graph in the making."""

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, values: Any) -> str:
        """Return the name of a new constant."""
        name = f"c{len(self.constants)}"
        values = np.asarray(values)
        if values.dtype.kind == "U":
            kind, flat = self.onnx.TensorProto.STRING, [text.encode() for text in values.tolist()]
            self.constants.append(self.onnx.helper.make_tensor(name, kind, values.shape, flat))
        else:
            self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def op(self, kind: str, *given: str, out: str = "", **options: Any) -> str:
        """Append an operation; return the name of its result."""
        out = out or f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(given), [out], **options))
        return out

    def number(self, values: str, kind: Any) -> str:
        """Append a change of type."""
        return self.op("Cast", values, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def input(self, name: str, width: int) -> str:
        """Declare the rows of a view."""
        double = self.onnx.TensorProto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, double, [None, width]))
        return name

    def output(self, name: str, kind: Any, shape: list[Any]) -> None:
        """Declare a result."""
        text = np.dtype(kind).kind == "U"
        code = self.onnx.TensorProto.STRING if text else self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, code, shape))


def _view_scores(graph: _Graph, model: Any, name: str, weights: np.ndarray, ones: np.ndarray) -> str:
    """Append the part of one view in the scores, 0 where the view is missing; return its name."""
    n_columns = model._known[name][1]
    X, zero = graph.input(name, n_columns), graph.constant(np.zeros(1))
    empty = graph.op("IsNaN", X)
    count = graph.op("ReduceMin", graph.number(empty, np.int32), axes=[1], keepdims=1)  # 1 where all values are NaN
    missing = graph.number(count, np.bool_)
    for step in _steps(model, name):
        if isinstance(step, RunningImputer):
            X = graph.op("Where", graph.op("IsNaN", X), graph.constant(step._mean), X)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = np.where(step.var_ > 0, 1 / np.sqrt(step.var_), 0.0)  # columns without variance become 0
            X = graph.op("Mul", graph.op("Sub", X, graph.constant(step.mean_)), graph.constant(scale))
    own = graph.op("MatMul", X, graph.constant(weights))
    own = graph.op("Add", own, graph.constant(ones.sum(axis=0)))
    return graph.op("Where", missing, zero, own)


def _steps(model: Any, name: str) -> list[Any]:
    """Return the steps that prepare a view; raise for those that the graph does not have."""
    prepare = model.preparation_
    own = "passthrough" if prepare is None else prepare.transformers_[name]
    if isinstance(own, str):
        return []
    other = [type(step).__name__ for step in own.steps if not isinstance(step, (RunningImputer, RunningScaler))]
    if other or own.kind != "dense":
        what = quoted(other) if other else "sparse rows"
        raise TypeError(
            f"View '{name}' is prepared by {what}, which the graph does not have. Only 'impute' and 'standardize' of "
            "dense views are exported; prepare the others before the model."
        )
    return list(own.steps)


def _add_outputs(graph: _Graph, model: Any, scores: str) -> None:
    """Append the label and the probabilities."""
    classes, kind = model.classes_, _LABELS[model.classes_.dtype.kind]
    two = len(classes) == 2
    if two:
        code = graph.number(graph.op("Greater", scores, graph.constant(np.zeros(1))), np.int64)
        code = graph.op("Squeeze", code, graph.constant(np.array([1])))
    else:
        code = graph.op("ArgMax", scores, axis=1, keepdims=0)
    graph.op("Gather", graph.constant(classes.astype(kind)), code, out="label")
    graph.output("label", kind, [None])
    if not model._gives_probabilities():
        return
    sure = model._calibration
    lead = graph.op("Abs", scores) if two else graph.op("Sub", scores, graph.op("ReduceMax", scores, axes=[1]))
    z = graph.op("Div", lead, graph.constant([sure.spread()]))
    part = graph.op("Div", z, graph.constant([REACH]))  # z / sqrt(1 + (z / REACH)²): large scores count less
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", part, part), graph.constant(np.ones(1))))
    bounded = graph.op("Div", z, root)
    scaled = [graph.op("Mul", bounded, graph.constant([slope])) for slope in sure.slopes]
    if not two:
        graph.op("Softmax", scaled[0], out="probabilities", axis=1)
    else:  # decisions for each of two classes have their own slope and bias
        sides = [graph.op("Add", own, graph.constant([b])) for own, b in zip(scaled, sure.biases, strict=True)]
        positive = graph.op("Greater", scores, graph.constant(np.zeros(1)))
        likely = graph.op("Sigmoid", graph.op("Where", positive, sides[1], sides[0]))
        other = graph.op("Sub", graph.constant(np.ones(1)), likely)
        pair = graph.op("Where", positive, other, likely), graph.op("Where", positive, likely, other)
        graph.op("Concat", *pair, out="probabilities", axis=1)
    graph.output("probabilities", np.float64, [None, len(classes)])
