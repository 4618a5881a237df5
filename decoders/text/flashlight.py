"""The one place that imports flashlight-text, an optional package."""

from __future__ import annotations

from typing import Any

from neuro import DataError


def flashlight_decoder() -> Any:
    """The module `flashlight.lib.text.decoder`.

    Raises
    ------
    DataError
        If flashlight-text is not installed.
    """
    try:
        import flashlight.lib.text.decoder as decoder
    except ImportError as error:
        raise DataError(
            f"words need the package flashlight-text, which cannot be loaded ({error}): pip install 'ranvier[text]'"
        ) from None
    return decoder
