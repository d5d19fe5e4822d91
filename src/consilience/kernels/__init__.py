"""Kernels: similarities between samples of one view, and the algebra that combines them.

What `__all__` of a module lists is public here.
"""

from . import algebra, by_view, dictionary, given, gram, histogram, normalization, outputs, scalar, structured
from .algebra import *  # noqa: F403
from .base import Kernel
from .by_view import *  # noqa: F403
from .dictionary import *  # noqa: F403
from .given import *  # noqa: F403
from .gram import *  # noqa: F403
from .histogram import *  # noqa: F403
from .normalization import *  # noqa: F403
from .outputs import *  # noqa: F403
from .scalar import *  # noqa: F403
from .structured import *  # noqa: F403

__all__ = ["Kernel"]  # one addition per line: type checkers read no other form
__all__ += scalar.__all__
__all__ += histogram.__all__
__all__ += structured.__all__
__all__ += given.__all__
__all__ += algebra.__all__
__all__ += normalization.__all__
__all__ += gram.__all__
__all__ += outputs.__all__
__all__ += by_view.__all__
__all__ += dictionary.__all__
