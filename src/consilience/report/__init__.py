"""Reports on comparisons, external cohorts and streams as one HTML file."""

from ._examine import examine
from ._external import examine_external
from ._findings import Disagreement, ExternalFindings, Findings, PredictionSets, Provenance, StreamFindings
from ._page import write_report

__all__ = [
    "Disagreement", "ExternalFindings", "Findings", "PredictionSets", "Provenance", "StreamFindings", "examine",
    "examine_external", "write_report",
]  # fmt: skip
