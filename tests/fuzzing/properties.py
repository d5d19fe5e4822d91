"""What must hold for every random case: a result, or a refusal in a sentence of the library."""

import mmap
import os
import re
import tempfile
import traceback
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

import consilience
from consilience import Views

# Texts of NumPy, SciPy, LAPACK and Python that say nothing to a reader of ours.
RAW = (
    "traceback", "infs or nans", "did not converge", "unable to allocate", "could not be broadcast", "illegal value",
    "leading minor", "singular matrix", "not aligned", "out of bounds", "object has no attribute", "float division",
    "cannot reshape", "positional argument", "is not subscriptable", "unsupported operand", "'nonetype' object",
    "mismatch in its core", "dimension mismatch",
)  # fmt: skip
RAW_STARTS = ("setting an array element", "could not convert", "invalid literal", "'utf-8' codec")  # fine as a reason
# what another library says about a damaged file is fine as a reason, next to the file and what may have happened
DAMAGED = re.compile(
    r"(?<=cannot be read as )[^:]*: .*(cannot reshape|out of bounds|not aligned).*(?=\. it may be empty, cut off)"
)
# files of this process, in memory where the system has such a folder
FOLDER = tempfile.TemporaryDirectory(prefix="fuzz", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)

PACKAGE = os.path.join(os.path.dirname(consilience.__file__), "")  # the library, whatever the name of the repository
# -- properties that all kinds share
# what: a function that describes the case; file: what the case reads; tell: where it may crash, sends a message
CASE = SimpleNamespace(tell=None, what=lambda: "", file=None)


def describe(what, file=None):
    """Keep what describes the case that runs, and the file that it reads; the parent process is told before a crash."""
    CASE.what, CASE.file = what, file
    if CASE.tell:
        CASE.tell(("about", what()[:600], file))


def attempt(call, *, doing="", also=(), foreign=False, any_text=False):
    """Return the result and None, or None and the sentence of the refusal; anything else is a failure.

    `also` are more exceptions that may refuse. With `foreign` the sentence may be that of a wrapped estimator, with
    `any_text` anybody's, with both the exception too.
    """
    try:
        return call(), None
    except (ValueError, TypeError, *also) as error:
        if not any_text:
            check_sentence(error, foreign)
        return None, str(error)
    except Exception as error:
        if foreign and any_text and not is_ours(error):
            return None, str(error)
        raise AssertionError(f"{explain(error)} {doing}") from error


def is_ours(error):
    """Tell whether an exception was raised by a line of the library."""
    return traceback.extract_tb(error.__traceback__)[-1].filename.startswith(PACKAGE)


class Refused(Exception):
    """The case ends here, since the library refused it in a sentence."""


def take(call, **how):
    """Return the result, or end the case where the library refuses."""
    result, sentence = attempt(call, **how)
    if sentence is not None:
        raise Refused(sentence)
    return result


def take_both(one, two):
    """Return two results, or end the case where both are refused; one of them alone must not be refused."""
    (first, no), (second, other) = attempt(one), attempt(two)
    assert (no is None) == (other is None), f"the first: {no}; the second: {other}"
    if no is not None:
        raise Refused(no)
    return first, second


def check_sentence(error, foreign=False):
    """Check that a refusal is a sentence of ours, not a text of NumPy, SciPy or LAPACK."""
    text = str(error).strip("'\" \n")
    told = DAMAGED.sub("", text.lower())
    raw = any(part in told for part in RAW) or told.startswith(RAW_STARTS)
    if raw or isinstance(error, np.linalg.LinAlgError):
        raise AssertionError(f"raw text {explain(error)}") from error
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    if foreign and not is_ours(first):
        return
    if len(text) <= 20 or not text.endswith((".", ".)")) or re.search(r"(?<!\.)\.\. ", text):
        raise AssertionError(f"no sentence: {explain(error)}") from error


def explain(error):
    """Return the type of an exception, the last place in the library that it went through, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
    place = f" at {frames[-1].filename.removeprefix(PACKAGE)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}: {str(error)[:300]!r}"


def show(value):
    """Describe data, parameters or an estimator in a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {show(part)}" for key, part in value.items()) + "}"
    if sp.issparse(value):
        return f"{value.format}({value.dtype}, {value.shape})"
    if isinstance(value, np.ndarray):
        size = f" up to {np.nanmax(np.abs(value), initial=0.0):.3g}" if value.dtype.kind == "f" and value.size else ""
        return f"array({value.dtype}, {value.shape}{size})" if value.size > 8 else f"array({value.tolist()})"
    if hasattr(value, "get_params"):
        return " ".join(value.__repr__(N_CHAR_MAX=2000).split())
    return " ".join(repr(value).split()) if isinstance(value, Views) else repr(value)[:200]


def taken(size):
    """Return memory that this process did not have before; a list or an array may use what was freed."""
    memory = mmap.mmap(-1, size)
    memory.write(b"x" * size)
    return memory
