"""Fixtures shared by the tests."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # one process per core: threads of BLAS would only wait for each other
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("consilience", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("consilience")


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("CONSILIENCE_DATA")
    if not folder:
        pytest.skip("CONSILIENCE_DATA is not set: the folder with the real data sets is not known")
    return Path(folder)
