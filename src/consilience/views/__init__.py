"""Multi-view data: the container, one view's block, tables and frames, validation of X, y and weights."""

from .container import Views
from .conversion import as_views

__all__ = ["Views", "as_views"]
