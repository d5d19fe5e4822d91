"""The state of fitted models as a hash, so that two of them can be compared bit for bit."""

import hashlib
import pickle
from typing import Any

import numpy as np


def fingerprint(value: Any, digest: Any = None) -> str:
    """Return a hash of all numbers, texts and arrays in a fitted model, whatever the order of its attributes."""
    top = digest is None
    digest = hashlib.sha256() if top else digest
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value.keys() - {"_shared"}, key=repr):  # whether arrays are copied before they change
            digest.update(repr(key).encode())
            fingerprint(value[key], digest)
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        for part in value:
            fingerprint(part, digest)
    elif type(value).__module__.startswith("consilience") and hasattr(value, "__dict__"):
        state = value.__getstate__() if hasattr(value, "__getstate__") else vars(value)
        fingerprint(state, digest)
    else:
        digest.update(pickle.dumps(value) if not isinstance(value, float) else value.hex().encode())
    return digest.hexdigest() if top else ""


def without_verbose(model: Any) -> dict[str, Any]:
    """Return the attributes of a model without `verbose`, which may differ from run to run."""
    return {name: value for name, value in vars(model).items() if name != "verbose"}
