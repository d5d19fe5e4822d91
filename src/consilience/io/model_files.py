"""Model files: nothing on disk is trusted, no code runs on load, writes are atomic.

A file has a line of magic, a line of JSON (format, version of the library, SHA-256 of the rest), then the model as
skops writes it, with names of classes that do not depend on modules. The digest detects accidental damage before
anything is read. It does not protect against malice: so sizes are checked before anything is unpacked, types against an
explicit list before anything is built, and states (shapes, index ranges) before the model is returned.
"""

import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .. import __version__
from .._backend import is_device_array, to_numpy
from ._class_names import from_file_names, to_file_names
from ._scikit_learn import has_categories, opens_files, unchecked_estimators
from ._states import check_state
from ._stored import walk
from ._unpacking import TooLarge, check_sizes
from .sharing import shareable
from .writing import write_atomically

__all__ = ["load", "save"]

_MAGIC = b"consilience model\n"
CHECKPOINT = b"consilience checkpoint\n"  # first line of the files of `write_checkpoint`
_FORMAT = 1
_LONGEST_HEADER = 4096
_TRUSTED = (
    "numpy.dtype", "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix",
    # calibration, written in Python
    "sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling", "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold", "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    # trees, whose nodes `check_state` validates
    "sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)  # fmt: skip


def save(model: Any, path: str | os.PathLike[str], *, trusted: Sequence[str] = (), share: bool = False) -> None:
    """Write a fitted model to a file, completely or not at all.

    Kernel models keep training samples: all of them, support vectors or landmarks, and the file holds these too. It
    must then be protected like the data. `consilience.io.stored_samples` and the command ``consilience inspect`` say
    how many samples a model holds. With `share`, a copy without training samples is written, as `shareable` makes it.

    Arrays of other libraries, also on a device, are written as NumPy arrays.

    Parameters
    ----------
    model : estimator, kernel or Views
        The object to save. Everything inside must be of types that `load` trusts: the library's own, and those of
        NumPy, SciPy and scikit-learn that skops considers safe. Calibrated classifiers, forests, histogram gradient
        boosting and support vector machines are among them; `load` validates their states. Clustering, neighbors,
        `GradientBoostingClassifier`, fitted searches and functions of your own that were given to kernels are not.
    path : path
        The file; an existing one is replaced only when the new one is complete.
    trusted : sequence of str, optional
        Full names of other types inside, such as an estimator of another package; `load` must be given them too.
    share : bool, default=False
        Whether to write a copy without training samples, with the same predictions. A model that cannot do without its
        samples raises an error.

    See Also
    --------
    load : Read it back.
    shareable : Make a copy without training samples.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cs.save(cs.kernels.RBF(gamma=0.5), Path(folder) / "kernel.cons")
    ...     print(cs.load(Path(folder) / "kernel.cons"))
    RBF(gamma=0.5)
    """
    if any(is_device_array(part) for part, _ in walk(model)):
        model = to_numpy(model)  # files do not depend on a device
    if share:
        model = shareable(model)
    if any(has_categories(part) for part, _ in walk(model)):
        raise TypeError(
            f"Not saved: {type(model).__name__} holds a boosted model of categories, which `load` would refuse. Encode "
            "categories as columns of numbers: data frames and files do so by themselves."
        )
    if any(opens_files(part) for part, _ in walk(model)):
        raise TypeError(
            f"Not saved: {type(model).__name__} holds a vectorizer that opens the files which the data name, and "
            "`load` would refuse it. Read the files first, and set input='content'."
        )
    year = time.localtime(time.time()).tm_year
    if not 1980 <= year <= 2107:  # of archives
        raise OSError(f"Not saved: the clock of this machine says {year}, which model files cannot hold. Set it first.")
    packed = _skops().dumps(model)
    payload, own = to_file_names(packed)
    foreign = _untrusted(packed, [*own, *trusted])  # an error at save is better than a file that cannot be loaded
    if foreign:
        raise TypeError(
            f"Not saved: {type(model).__name__} holds {', '.join(foreign)}, which `load` would refuse. Name types that "
            "you trust by trusted=[...] here and at load; replace functions of your own by kernels of the library."
        )
    header = {"format": _FORMAT, "version": __version__, "sha256": hashlib.sha256(payload).hexdigest()}
    content = _MAGIC + json.dumps(header).encode() + b"\n" + payload
    write_atomically(Path(path), lambda file: file.write(content))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote. No code in the file runs.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, optional
        Full names of types to trust besides the library's own and those that skops considers safe.

    Returns
    -------
    object
        The model.

    See Also
    --------
    save : Write it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cs.save(cs.Views(a=[[1.0, 2.0]]), Path(folder) / "views.cons")
    ...     print(cs.load(Path(folder) / "views.cons"))
    Views of 1 sample
      a  dense float64  2 columns
    """
    with open(path, "rb") as file:
        start = file.readline(len(CHECKPOINT))
        if start == CHECKPOINT:
            from .checkpoints import read_checkpoint

            return read_checkpoint(path)
        if start != _MAGIC:
            raise ValueError(f"'{path}' is not a model file of consilience. Files are written by consilience.save.")
        payload = read_header(file, path, _FORMAT)
    skops = _skops()
    # not a zip archive, no schema in it: skops and zipfile raise errors of many kinds
    with damaged(path, "it does not hold a model"):
        check_sizes(payload)
        packed, own, unknown = from_file_names(payload)
        foreign = sorted(unknown.difference(trusted)) or _untrusted(packed, [*own, *trusted])
    if foreign:
        raise ValueError(
            f"'{path}' is refused: it holds {', '.join(foreign)}, which are not trusted. If you know the file, name "
            "them by trusted=[...]."
        )
    with damaged(path, "its content cannot be read as a model"):
        model = skops.loads(packed, trusted=[*own, *_TRUSTED, *trusted])
    with damaged(path):
        check_state(model)
    return model


@contextmanager
def damaged(path: str | os.PathLike[str], what: str = "") -> Iterator[None]:
    """Turn any error into one that names the file, with `what` is wrong or the reason that a check gives."""
    try:
        yield
    except TooLarge as error:
        raise ValueError(f"'{path}' is refused: {error}.") from error
    except Exception as error:
        raise ValueError(f"'{path}' is damaged: {what or error}. Save the model again.") from error


def read_header(file: IO[bytes], path: str | os.PathLike[str], known: int) -> bytes:
    """Return what a file holds after its header, which says its format and its checksum."""
    head, payload = file.readline(_LONGEST_HEADER), file.read()  # a damaged file may have no end of line
    with damaged(path, "its header cannot be read"):
        header = json.loads(head)
        layout, digest, version = int(header["format"]), str(header["sha256"]), str(header["version"])
    if layout != known:
        raise ValueError(
            f"'{path}' has file format {layout}, written by version {version}; this is version {__version__} and reads "
            f"format {known}. Load it with that version."
        )
    if hashlib.sha256(payload).hexdigest() != digest:
        raise ValueError(f"'{path}' is damaged: its checksum does not match its content. Save the model again.")
    return payload


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Model files need the package skops: pip install 'consilience[io]'.") from error
    return skops.io


def _untrusted(packed: bytes, trusted: Collection[str]) -> list[str]:
    foreign = {*_skops().get_untrusted_types(data=packed), *unchecked_estimators(packed)}
    return sorted(foreign.difference(_TRUSTED, trusted))
