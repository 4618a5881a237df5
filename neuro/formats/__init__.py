"""File formats of Brain-to-Text recordings, one a file."""

from neuro.formats import b2t24, b2t25, ptdecoder
from neuro.formats.base import SPLITS, Format, Source, TrialRef

FORMATS: dict[str, Format] = {
    "b2t25": b2t25.FORMAT,
    "b2t24": b2t24.FORMAT,
    "ptdecoder": ptdecoder.FORMAT,
}
"""Every known form, in the order in which `neuro.open_recordings` tries them."""

__all__ = ["FORMATS", "SPLITS", "Format", "Source", "TrialRef"]
