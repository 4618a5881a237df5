"""Neural activity to phonemes: cores, decoders, training and scores."""

from decoders.budget import build_core, parse_budget, solve_width
from decoders.cores import CORES, Core
from decoders.ctc import ctc_loss, greedy, infeasible_trials
from decoders.official import OFFICIAL, OfficialB2T24, OfficialB2T25, load_official
from decoders.phoneme_decoder import PhonemeDecoder
from decoders.streaming import StreamingDecoder

__all__ = [
    "CORES",
    "OFFICIAL",
    "Core",
    "OfficialB2T24",
    "OfficialB2T25",
    "PhonemeDecoder",
    "StreamingDecoder",
    "build_core",
    "ctc_loss",
    "greedy",
    "infeasible_trials",
    "load_official",
    "parse_budget",
    "solve_width",
]
