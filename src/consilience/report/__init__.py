"""Reports: what was found in data, learners and streams, as one HTML file to look at, print and pass on."""

from ._examine import Disagreement, Findings, StreamFindings, examine
from ._page import write_report

__all__ = ["Disagreement", "Findings", "StreamFindings", "examine", "write_report"]
