"""Fixtures and settings shared by all tests."""

import os
from pathlib import Path

import pytest
import torch

# Two spinning threads on shared cores are many times slower than one.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the small recorded data sets; skips the test where there is none."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("RANVIER_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"recorded data not found in {folder}; set RANVIER_DATA to its folder")
    return folder
