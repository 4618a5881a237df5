"""The simulated participant that the phoneme studies share."""

from __future__ import annotations

from pathlib import Path

from neuro import DataError

SESSIONS, TRIALS = 8, 250


def simulated(folder: Path, seed: int = 1) -> Path:
    """The simulated participant, made at the first call.

    Converted to the '25 form, whose trials are read one by one: batches of all sessions would load whole '24 files
    again and again.

    Parameters
    ----------
    folder
        Where it is or will be; the converted copy lies beside it.
    seed
        Another number is another participant: other electrodes, other sentences.

    Raises
    ------
    DataError
        If it cannot be made.
    """
    converted = folder.with_name(folder.name + "-25")
    if not folder.exists():
        size = ["--sessions", str(SESSIONS), "--trials", str(TRIALS)]
        _call("simulate", [str(folder), "--format", "b2t24", *size, "--seed", str(seed)])
    if not converted.exists():
        _call("convert", ["recordings", str(folder), "--out", str(converted)])
    return converted


def _call(command: str, arguments: list[str]) -> None:
    from scripts.cli import call

    if code := call(command, arguments):
        raise DataError(f"`ranvier {command}` ended with exit code {code}, so the study stops here")
