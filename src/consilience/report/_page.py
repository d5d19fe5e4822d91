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
from ._external_section import external_section
from ._findings import ExternalFindings, Findings, Provenance, StreamFindings
from ._html import PagePart, html_contents, html_part
from ._provenance import how_to_read, provenance_section
from ._sections import comparison_section
from ._stream_section import stream_section

Reported = Findings | StreamFindings | ExternalFindings


def write_report(
    path: str | os.PathLike[str],
    parts: Reported | Sequence[Reported],
    *,
    title: str = "Report",
    provenance: Provenance | None = None,
) -> Path:
    """Write a report as one HTML file, which needs no network and prints well.

    Parameters
    ----------
    path : path
        File to write. An existing file is replaced only when the new one is complete.
    parts : Findings, StreamFindings, ExternalFindings or a sequence of them
        Results of `examine` and `examine_external`, and results on streams.
    title : str, default="Report"
        Heading of the page.
    provenance : Provenance, optional
        Files, command and model file, for the last section. Default: versions and the random state only.

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
    given = [parts] if isinstance(parts, (Findings, StreamFindings, ExternalFindings)) else list(parts)
    text = _page(given, title, provenance or Provenance())
    write_atomically(target, lambda file: file.write(text.encode()))
    return target


def _part(part: Reported) -> PagePart:
    if isinstance(part, StreamFindings):
        return stream_section(part)
    return external_section(part) if isinstance(part, ExternalFindings) else comparison_section(part)


def _page(given: Sequence[Reported], title: str, provenance: Provenance) -> str:
    folder = files(__package__)
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    # the browser runs and loads nothing but these two, whatever names and classes the data contain
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    parts = [*map(_part, given), *([provenance_section(given[0], provenance)] if given else [])]
    sections = "".join(html_part(part, number) for number, part in enumerate(parts))
    intervals = how_to_read(all(isinstance(part, StreamFindings) for part in given))
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
{html_contents(parts)}
<main>
{sections}
</main>
<footer>
{intervals}
<p>Click the heading of a column to sort a table. Made by consilience {escape(__version__)} on {made}.</p>
</footer>
<script>{script}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
