"""The last section of a report: where it comes from, and the lines of code that load the model and predict."""

import hashlib
import platform
import shlex
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import __version__
from ..evaluation._wrappers import final_estimator
from ._findings import ExternalFindings, Findings, Provenance, StreamFindings
from ._html import PagePart, described, folded

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "skops")
_MOST_BYTES = 1 << 30  # of a file whose digest is computed


def provenance_section(part: Findings | StreamFindings | ExternalFindings, given: Provenance) -> PagePart:
    """Return the section about the origin of a report, of which `part` is the first part."""
    facts = []
    if given.files:
        facts.append(("files", "<br>".join(_file(Path(path)) for path in given.files)))
    if given.command:
        facts.append(("command", f"<code>{escape(given.command)}</code>"))
    seed = given.random_state
    if seed is None and isinstance(part, Findings):
        seed = part.board.random_state
    if seed is not None:
        facts.append(("random state", f"{seed}"))
    facts.append(("consilience", escape(__version__)))
    facts.append(("Python", escape(f"{platform.python_version()} on {platform.system()} {platform.machine()}")))
    versions = [f"{name} {number}" for name in PACKAGES if (number := _version(name))]
    facts.append(("packages", escape(", ".join(versions))))
    blocks = {"Where it comes from": described(facts)}
    code = _code(part, given)
    if code:
        blocks["Load the model and predict"] = code
    return PagePart("Provenance", "", blocks)


def _file(path: Path) -> str:
    """Return the name of a file, its size and the start of its digest."""
    if not path.is_file():
        return escape(str(path))
    size = path.stat().st_size
    text = f"{path} ({size:,} bytes"
    if size <= _MOST_BYTES:
        with path.open("rb") as file:
            text += f", SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}…"
    return escape(text + ")")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _code(part: Any, given: Provenance) -> str:
    """Return the lines of code that load the model and predict new samples."""
    if isinstance(part, StreamFindings) and given.model_file is None:
        return ""
    lines = ["import consilience as cs", ""]
    if given.model_file is None:
        name = part.board[0].name if isinstance(part, Findings) else type(final_estimator(part.model)).__name__
        lines += [
            f"model = findings.model  # {name}, fitted on all samples",
            'cs.save(model, "model.cons")',
            'model = cs.load("model.cons")',
        ]
        file = "model.cons"
    else:
        file = str(given.model_file)
        lines += [f"model = cs.load({file!r})"]
    views = "" if isinstance(part, StreamFindings) else ", ".join(f"{name!r}: ..." for name in part.X.names)
    lines += [f"X = cs.Views({{{views}}})  # tables with the columns of the training samples"] if views else []
    lines += ["predictions = model.predict(X)"]
    text = f"<pre><code>{escape(chr(10).join(lines))}</code></pre>"
    shell = shlex.join(["consilience", "predict", file, "new.csv", "--out", "predictions.csv"])
    return text + f"<p>Or on the command line:</p><pre><code>{escape(shell)}</code></pre>"


def how_to_read(streams_only: bool) -> str:
    """Return what intervals mean in the report."""
    if streams_only:
        return ""
    text = (
        "Intervals are 95% confidence intervals. Those of shares are Wilson's (1927). Those of a mean over folds are "
        "corrected for training parts that share samples (Nadeau and Bengio 2003). Differences are paired: both "
        "estimators predict the same held-out samples. Each interval is about one number: of twenty, about one misses "
        "the truth, and more do where samples or a class are few."
    )
    return folded("How to read the intervals", f"<p>{text}</p>")
