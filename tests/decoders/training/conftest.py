from pathlib import Path

import pytest

pytest.importorskip("pytorch_lightning", reason="training needs the extra `train`")

from tests.decoders.training.tiny import write_recording


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of three sessions, 15 training and 6 validation trials."""
    return write_recording(tmp_path_factory.mktemp("recording") / "data")
