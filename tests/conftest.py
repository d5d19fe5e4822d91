"""Fixtures shared by the tests."""

import os
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
