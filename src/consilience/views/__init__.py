"""Multi-view data: the container, one view's block, tables and frames, validation of X, y and weights."""

from .container import Views
from .conversion import as_views
from .row_blocks import RowBlocks

__all__ = ["RowBlocks", "Views", "as_views"]
