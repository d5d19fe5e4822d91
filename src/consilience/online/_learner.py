"""What online learners share: a machine that holds the state, kernels of a stream, single samples lightly."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..kernels import Kernel, Linear, kernels_by_view, resolve_kernels
from ..kernels.by_view import kernel_of
from ..kernels.given import as_kernel
from ..solvers.certificates import MistakeCertificate
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import decide
from ..views.validation import read_labels, read_views_to_predict
from ._bounds import Comparison, Setting, mistake_certificate
from ._dual import KernelMachine, ProjectronMachine
from ._frame import OnlineLearner, check_choice, check_count, check_number, new_outputs, one_row
from ._linear import LinearMachine, LinkMachine, Rows, Rule

Machine = LinearMachine | LinkMachine | KernelMachine | ProjectronMachine


class MachineLearner(OnlineLearner):
    """An online learner whose state is a machine, linear or of kernels."""

    average: Any
    _machine: Any
    _second_class = 1.0  # what the output of two classes becomes for the second as a third joins

    @property
    def _piece(self) -> int:  # type: ignore[override]
        return 65536 if self._by_columns() else 1024

    @abstractmethod
    def _new_machine(self, n_outputs: int) -> Machine:
        """The empty state."""

    def _rule(self) -> Rule:
        return Rule(float(self.margin), float(self.eta0), float(self.eta0))

    def _check_common(self) -> None:
        check_choice("average", self.average, (False, True, "voted"))
        for name in ("margin", "step"):
            if hasattr(self, name):
                check_number(name, getattr(self, name), above=name == "eta0")
        if hasattr(self, "budget"):
            check_count("budget", self.budget, optional=True)

    # -- state
    def _snapshot(self) -> dict[str, Any]:
        before = super()._snapshot()
        if hasattr(self, "_machine"):
            before.update(_machine=self._machine.snapshot(), kernels_=dict(self.kernels_))
        return before

    def _start(self) -> None:
        self._machine = self._new_machine(_n_outputs(self.classes_))
        self.kernels_: dict[str, Kernel] = {}

    def _grow(self, before: np.ndarray) -> None:
        sources = new_outputs(before, self.classes_, self._second_class)
        if sources is not None:
            self._machine.place(sources)

    @property
    def n_updates_(self) -> int:  # type: ignore[override]
        """How often the state changed."""
        check_is_fitted(self, "n_samples_seen_")
        return int(self._machine.n_steps)

    def _wait(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples of the only class there is: nothing to tell apart."""
        self._machine.n_hypotheses += n
        return np.zeros((n, 1)), np.zeros(n, dtype=bool)

    def _ready(self, X: Views) -> Any:
        self._meet(X)
        return self._machine.read(X) if isinstance(self._machine, LinearMachine) else X

    def _learn(self, X: Any, codes: np.ndarray, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        if len(self.classes_) == 1:
            return self._wait(len(codes))
        if isinstance(self._machine, KernelMachine):
            return self._machine.learn(X, codes, self._rule(), ids)
        return self._machine.learn(X, codes, self._rule())

    def _meet(self, X: Views) -> None:
        if isinstance(self._machine, (LinearMachine, LinkMachine)):
            self._machine.meet(X)
        else:
            self._machine.meet(X, self._kernels_of(X))

    def _scores(self, X: Views) -> np.ndarray:
        if isinstance(self._machine, LinearMachine):
            return self._machine.scores(X, self.average is True)
        return self._machine.scores(X)

    def _by_columns(self) -> bool:
        """Whether weights are kept, and no samples."""
        return False

    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        for name in X.names:
            if X.block(name) is None:
                continue
            if self._by_columns() and X.kind(name) not in ("dense", "sparse"):
                raise ValueError(
                    f"View '{name}' holds {X.kind(name)}; {type(self).__name__} is linear here and takes numbers. Give "
                    "a kernel, or use KernelPerceptron."
                )
            if not self._by_columns() and not whole:
                check_kernel(self._kernel_of(name), name, X)

    # -- kernels
    def _is_linear(self) -> bool:
        given = getattr(self, "kernel", "linear")
        return not isinstance(given, Mapping) and type(as_kernel(given)) is Linear

    def _kernels_of(self, X: Views) -> dict[str, Kernel]:
        """The kernels of the views that have come, with numbers for parameters."""
        for name in X.names:
            if name not in self.kernels_ and X.present(name).any():
                self.kernels_[name] = stream_kernel(self._kernel_of(name), name, _blocks.width(X.block(name)))
        return self.kernels_

    def _kernel_of(self, name: str) -> Kernel:
        return kernel_of(getattr(self, "kernel", "linear"), name)

    def _prepare(self, X: Views) -> None:
        if isinstance(self._machine, (KernelMachine, ProjectronMachine)):
            shown = [name for name in X.names if X.present(name).any()]
            kernels = kernels_by_view(getattr(self, "kernel", "linear"), X.names)
            self.kernels_ = resolve_kernels({name: kernels[name] for name in shown}, X)

    # -- what was learned
    @property
    def support_(self) -> np.ndarray:
        """Positions of the samples kept, among those of `fit` or in the stream (kernel learners only)."""
        machine = self._of_kernels("support_")
        return machine.support.ids[_alive(machine)]

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the samples kept, before any factors or averages: (n_support,) or (n_classes, n_support)."""
        machine = self._of_kernels("dual_coef_")
        alpha = machine.alpha[:, _alive(machine)]
        return alpha[0] if len(alpha) == 1 else alpha

    @property
    def coef_(self) -> dict[str, np.ndarray]:
        """Weights by view, of the last hypothesis or the mean of all (linear learners only)."""
        machine = self._of_columns("coef_")
        W = self._all_weights(machine)
        found = {}
        for l, name in enumerate(machine.offsets):
            own = W[machine.offsets[name] : machine.offsets[name] + machine.widths[name]]
            own = own[:, l if getattr(machine, "shape", "") == "matrix" else 0]
            found[name] = own[:, 0] if own.shape[1] == 1 else own
        return found

    @property
    def bias_(self) -> np.ndarray:
        """The bias of each output (linear learners with one only)."""
        machine = self._of_columns("bias_")
        if not machine.bias:
            raise AttributeError(f"{type(self).__name__} was learned without a bias.")
        if isinstance(machine, LinkMachine):
            return np.array(machine.weights()[0])
        return np.asarray(machine.bias_weights(self.average is True))

    def _all_weights(self, machine: Any) -> np.ndarray:
        if isinstance(machine, LinkMachine):
            return machine.weights()[:, None]
        return np.asarray(machine.weights(self.average is True))

    def _of_kernels(self, what: str) -> Any:
        check_is_fitted(self, "n_samples_seen_")
        if not hasattr(self._machine, "support"):
            raise AttributeError(f"{type(self).__name__} is linear here: it keeps no samples, so it has no `{what}`.")
        return self._machine

    def _of_columns(self, what: str) -> Any:
        check_is_fitted(self, "n_samples_seen_")
        if not hasattr(self._machine, "offsets"):
            raise AttributeError(
                f"{type(self).__name__} learns by kernels here: it has `support_` and `dual_coef_`, no `{what}`."
            )
        return self._machine

    # -- proof
    def _setting(self) -> Setting | None:
        """Which bound holds; None where none is known."""
        return None

    def certificate(self, X: Any = None, y: Any = None, *, comparator: Any = None) -> MistakeCertificate:
        """Return the mistakes made, and the most there can be.

        Parameters
        ----------
        X : Views or what `as_views` reads, optional
            The samples learned. Without them the bound is that of the comparator 0, the number of samples.
        y : array-like of shape (n_samples,), optional
            Their classes.
        comparator : dict or array, optional
            The U of the bound: weights by view for a linear learner, or coefficients of the samples, (n_samples,) or
            (n_samples, n_classes). By default several are found by support vector machines, and the best is taken.

        Returns
        -------
        MistakeCertificate
            Mistakes and bound; prints as a sentence.
        """
        check_is_fitted(self, "n_samples_seen_")
        return mistake_certificate(self, Comparison(X, y, comparator), self._setting())

    def _read_pairs(self, comparison: Comparison) -> tuple[Views, np.ndarray]:
        X = read_views_to_predict(self, comparison.X)
        labels = read_labels(comparison.y, len(X), classes=self.classes_)
        given = np.flatnonzero(labels.labeled)
        return X[given], labels.codes[given]

    # -- one sample, lightly
    def learn_one(self, x: Mapping[str, Any], y: Any) -> Self:
        """Learn one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view, as an array, a sparse row or a list of numbers; absent views are left out.
        y : object
            Its class.

        Returns
        -------
        self
            The learner.
        """
        rows = self._light(x)
        code = _code(self._light_codes, y) if rows is not None else -1
        if rows is None or code < 0:
            self.partial_fit(one_row(x), [y])
            if hasattr(self, "n_samples_seen_") and isinstance(self._machine, LinearMachine) and len(self.classes_) > 1:
                self._light_codes: dict[Any, int] = {label: c for c, label in enumerate(self.classes_.tolist())}
                self._light_for = self.classes_
            return self
        _, wrong = self._machine.learn(rows, np.array([code]), self._rule())
        self._next_id += 1
        self._count_one(bool(wrong[0]))
        return self

    def _light(self, x: Mapping[str, Any]) -> Rows | None:
        """One sample as the rows of a linear machine; None where it goes the long way."""
        machine = getattr(self, "_machine", None)
        if type(machine) is not LinearMachine or getattr(self, "_light_for", None) is not self.classes_:
            return None
        self._check_settings()
        return machine.read_one(x)

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the class of one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view, as an array, a sparse row or a list of numbers; absent views are left out.

        Returns
        -------
        object
            The class; None before a sample was learned.
        """
        rows = self._light(x)
        if rows is None:
            return super().predict_one(x)
        scores = self._machine.row_scores(rows, self.average is True)
        return self.classes_[decide(scores[:, 0] if scores.shape[1] == 1 else scores, len(self.classes_))][0]


def _n_outputs(classes: np.ndarray) -> int:
    return 1 if len(classes) <= 2 else len(classes)


def _code(codes: Mapping[Any, int], label: Any) -> int:
    try:
        return codes.get(label, -1)
    except TypeError:  # no label at all: partial_fit says so
        return -1


def _alive(machine: Any) -> Any:
    return machine.alive if hasattr(machine, "alive") else slice(None)


def check_kernel(kernel: Kernel, name: str, X: Views) -> None:
    """Refuse samples that a kernel of a stream does not take, before any is learned: one row of values tells."""
    known = stream_kernel(kernel, name, _blocks.width(X.block(name)))
    there = np.flatnonzero(X.present(name))
    if len(there) and X.kind(name) != "gram":
        with _blocks.naming(name):
            known(_blocks.take(X.block(name), there[:1]), _blocks.take(X.block(name), there))


def stream_kernel(kernel: Kernel, name: str, width: int) -> Kernel:
    """The kernel with numbers: a stream has no variance yet, so "scale" is one over the number of columns."""
    scaled = [key for key, value in kernel.get_params(deep=True).items() if isinstance(value, str) and value == "scale"]
    known = clone(kernel).set_params(**dict.fromkeys(scaled, 1.0 / max(width, 1)))
    if known._unresolved():
        raise ValueError(
            f"View '{name}': {kernel!r} takes a parameter from the data, which a stream does not have at once. Give it "
            "a number, or use `fit`."
        )
    return known
