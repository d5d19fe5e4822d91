"""Reports on comparisons and streams as one HTML file."""

from ._examine import examine
from ._findings import Disagreement, Findings, StreamFindings
from ._page import write_report

__all__ = ["Disagreement", "Findings", "StreamFindings", "examine", "write_report"]
