"""The report as one HTML file that needs no other file and no network."""

import base64
import hashlib
import os
from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path

from .. import __version__
from ..io.writing import check_output, write_atomically
from ._findings import Findings, StreamFindings
from ._sections import comparison_section
from ._stream_section import stream_section


def write_report(
    path: str | os.PathLike[str],
    parts: Findings | StreamFindings | Sequence[Findings | StreamFindings],
    *,
    title: str = "Report",
) -> Path:
    """Write a report as one HTML file, which needs no network and prints well.

    Parameters
    ----------
    path : path
        File to write. An existing file is replaced only when the new one is complete.
    parts : Findings, StreamFindings or a sequence of them
        Results of `examine`, and results on streams.
    title : str, default="Report"
        Heading of the page.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import consilience as cs
    >>> from consilience.report import StreamFindings, write_report
    >>> X, y = cs.datasets.make_views(n_samples=300, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron()
    >>> result = cs.progressive_validation(model, X, y)
    >>> stream = StreamFindings("made", "OrthogonalPerceptron", result)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_report(f"{folder}/report.html", stream)
    ...     "share of mistakes" in file.read_text()
    True
    """
    target = Path(path)
    check_output(target)  # before the charts are drawn
    text = _page([parts] if isinstance(parts, (Findings, StreamFindings)) else list(parts), title)
    write_atomically(target, lambda file: file.write(text.encode()))
    return target


def _page(parts: Sequence[Findings | StreamFindings], title: str) -> str:
    folder = files(__package__)
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    # the browser runs and loads nothing but these two, whatever names and classes the data contain
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    sections = [
        stream_section(part, k) if isinstance(part, StreamFindings) else comparison_section(part, k)
        for k, part in enumerate(parts)
    ]
    links = "".join(f'<li><a href="#part{k}">{escape(part.title)}</a></li>' for k, part in enumerate(parts))
    contents = f'<nav aria-label="Parts"><ul>{links}</ul></nav>' if len(parts) > 1 else ""
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><button id="theme" type="button" hidden>Dark</button></header>
{contents}
<main>
{"".join(sections)}
</main>
<footer>
<p>Intervals are 95% confidence intervals of a mean over folds. They are corrected for training parts that share samples
(Nadeau and Bengio 2003). Those of accuracies are at least as wide as the interval of a proportion of that many samples
(Wilson 1927).</p>
<p>Click the heading of a column to sort a table. Made by consilience {escape(__version__)} on {made}.</p>
</footer>
<script>{script}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
