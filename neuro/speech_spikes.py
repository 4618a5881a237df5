"""A folder of recorded speech as labelled spike trains: every recording goes through the cochlea, at about 1 ms.

This is how the Spiking Heidelberg Digits were made, with another model of the ear: here the auditory nerve itself,
there bushy cells behind it, which lock to the sound more sharply (Cramer et al. 2022, arXiv:1910.07407).
"""

from __future__ import annotations

import multiprocessing
import re
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile

from neuro.cochlea import Cochlea
from neuro.errors import DataError
from neuro.speech import FOLDERS_WITHOUT_A_NAME, Recording, common_sample_rate, read_sound

SOUNDS = {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff", ".au", ".sph"}
"""Ends of the names of sound files."""

PATTERNS: dict[str, str] = {
    "LABEL_SPEAKER_INDEX": r"(?P<label>[^/_]+)_(?P<speaker>[^/]+)_\d+",
    "LABEL/SPEAKER_nohash_INDEX": r"(?P<label>[^/]+)/(?P<speaker>[^/]+)_nohash_\d+",
    "LABEL/SPEAKER/FILE": r"(?P<label>[^/]+)/(?P<speaker>[^/]+)/[^/]+",
}
"""Known ways to name recordings: of the Free Spoken Digit Dataset, of Speech Commands, and sub-folders.

Each is a regular expression for the path of a file inside its folder, without the end of its name.
"""

DT = 0.001
_CHUNK = 8  # recordings that are sent to a worker at once


def nerve(n_channels: int = 70, sample_rate: int = 8000, **options) -> Cochlea:
    """A `neuro.cochlea.Cochlea` for spike trains: bins of 1 ms, no spikes in silence, and a raised threshold.

    Without spontaneous spikes, and with a threshold of 5e-3 (20 dB below the level to which recordings are brought),
    formants stand out from a quiet ground. Any parameter can be given another value.
    """
    return Cochlea(
        n_channels=n_channels,
        sample_rate=sample_rate,
        **{"dt": DT, "spontaneous_hz": 0.0, "threshold": 5e-3} | options,
    )


def list_spoken(folder: Path | str, pattern: str | None = None) -> list[Recording]:
    """Recordings of a folder, in the order of their names, with labels (as ``text``) and speakers from these names.

    Parameters
    ----------
    folder
        Searched with its sub-folders; hidden files are passed over. Where the folder has one called ``recordings``,
        ``wav``, ``audio`` or the like, that one is meant.
    pattern
        Regular expression with the groups ``label`` and ``speaker`` that must fit the whole path inside the folder,
        without the end of the name (``yes/ann_3`` for ``yes/ann_3.wav``); files that it does not fit are left out. By
        default the first of `PATTERNS` that fits every file.

    Raises
    ------
    DataError
        If the folder is missing or holds no sound, the pattern is faulty or fits nothing, or no known one fits all.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("folder of recorded speech not found", file=folder)
    inner = sorted(p for p in folder.iterdir() if p.is_dir() and p.name.lower() in FOLDERS_WITHOUT_A_NAME)
    folder = inner[0] if len(inner) == 1 else folder
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SOUNDS and path.is_file())
    names = {path.relative_to(folder).with_suffix("").as_posix(): path for path in files}
    names = {name: path for name, path in names.items() if not re.search(r"(^|/)\.", name)}
    if not names:
        raise DataError("no recorded speech here", file=folder, expected=f"files that end in {', '.join(SOUNDS)}")
    if pattern is not None:
        matches = _fitting(_compiled(pattern), names)
        if not matches:
            raise DataError("pattern fits no recording", file=folder, field="pattern", found=next(iter(names)))
    else:
        tried = [_fitting(re.compile(known), names) for known in PATTERNS.values()]
        matches = next((found for found in tried if len(found) == len(names)), {})
        if not matches:
            closest = max(tried, key=len)
            raise DataError(
                "label and speaker cannot be told from the names; say how with a pattern (--pattern)",
                file=folder,
                found=f"{next(name for name in names if name not in closest)!r} among {len(names)} recordings",
                expected=f"every one named {' or '.join(PATTERNS)}",
            )
    return [Recording(names[name], match["speaker"], match["label"]) for name, match in matches.items()]


@dataclass(frozen=True)
class SpokenSpikes:
    """How a folder of recorded speech becomes spike trains.

    Iterating makes one trial after the other: seconds float64 (S,) and units int64 (S,), as `neuro.write_shd` takes
    them. The spikes of a bin are spread evenly over it. Each recording has its own stream of random numbers, so its
    spikes depend neither on what else is in the folder nor on `workers`.

    Parameters
    ----------
    folder, pattern
        See `list_spoken`.
    cochlea
        The ear; by default `nerve` at the recordings' own sample rate.
    sample_rate
        Hz to which all recordings are brought. Without it, recordings that differ in sample rate are refused, because
        they differ in bandwidth.
    seed
        Of the spikes.
    workers
        Processes.

    Raises
    ------
    DataError
        On construction, see `list_spoken`; or if sample rates differ.
    """

    folder: Path
    pattern: str | None = None
    cochlea: Cochlea | None = None
    sample_rate: int | None = None
    seed: int = 0
    workers: int = 1
    recordings: list[Recording] = field(init=False, repr=False)
    ear: Cochlea = field(init=False)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise DataError("impossible number of processes", field="workers", found=self.workers, expected="1 or more")
        if self.seed < 0:
            raise DataError("impossible seed", field="seed", found=self.seed, expected="0 or more")
        recordings = list_spoken(self.folder, self.pattern)
        rate = common_sample_rate(recordings) if self.sample_rate is None else self.sample_rate
        object.__setattr__(self, "recordings", recordings)
        object.__setattr__(self, "ear", self.cochlea or nerve(sample_rate=rate))

    @property
    def keys(self) -> list[str]:
        """Names of the labels; numbers in their order, then words in theirs."""
        return sorted({r.text for r in self.recordings}, key=_natural)

    @property
    def speaker_names(self) -> list[str]:
        """Names of the speakers, in order."""
        return sorted({r.speaker for r in self.recordings}, key=_natural)

    @property
    def labels(self) -> np.ndarray:
        """Positions in `keys`, int64 (n,)."""
        return _positions([r.text for r in self.recordings], self.keys)

    @property
    def speakers(self) -> np.ndarray:
        """Positions in `speaker_names`, int64 (n,)."""
        return _positions([r.speaker for r in self.recordings], self.speaker_names)

    @property
    def source(self) -> str:
        """Name of the folder, of its parent where it is called ``recordings`` or the like."""
        folder = Path(self.folder).resolve()
        return folder.parent.name if folder.name.lower() in FOLDERS_WITHOUT_A_NAME else folder.name

    def seconds(self) -> float:
        """Length of all recordings together, from their headers."""
        return sum(soundfile.info(recording.path).duration for recording in self.recordings)

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.workers == 1:
            yield from map(self.hear, range(len(self)))
            return
        # A fresh interpreter: what torch and HDF5 hold does not survive a fork.
        with ProcessPoolExecutor(self.workers, multiprocessing.get_context("spawn")) as pool:
            yield from pool.map(self.hear, range(len(self)), chunksize=_CHUNK)

    def hear(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Spikes of recording `i` in the order of time: seconds float64 (S,) and units int64 (S,)."""
        path = self.recordings[i].path
        samples, rate = read_sound(path)
        name = path.relative_to(self.folder).as_posix()
        counts = self.ear.spike_counts(samples, rate, np.random.SeedSequence([self.seed, zlib.crc32(name.encode())]))
        return spread(counts, self.ear.dt)


def spread(counts: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Spikes behind counts (T, N): seconds float64 (S,), ascending, and units int64 (S,).

    k spikes of one unit in one bin lie in the middles of k equal parts of it, so that a single one is never on an edge.

    Examples
    --------
    >>> times, units = spread(np.array([[0, 1], [2, 0]]), dt=0.5)
    >>> times.tolist(), units.tolist()
    ([0.25, 0.625, 0.875], [1, 0, 0])
    """
    bins, units = np.nonzero(counts)
    many = counts[bins, units]
    first = np.repeat(np.cumsum(many) - many, many)
    within = (np.arange(many.sum()) - first + 0.5) / np.repeat(many, many)
    times, units = (np.repeat(bins, many) + within) * dt, np.repeat(units, many)
    order = np.argsort(times, kind="stable")
    return times[order], units[order]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise DataError("pattern is no regular expression", field="pattern", found=f"{pattern!r}: {error}") from None
    if missing := {"label", "speaker"} - set(compiled.groupindex):
        raise DataError(
            f"pattern without the group {' and '.join(sorted(missing))}",
            field="pattern",
            found=repr(pattern),
            expected=r"both, as in '(?P<label>\w+)/(?P<speaker>\w+)-.*'",
        )
    return compiled


def _fitting(pattern: re.Pattern[str], names: dict[str, Path]) -> dict[str, re.Match[str]]:
    return {name: match for name in names if (match := pattern.fullmatch(name))}


def _natural(name: str) -> tuple[bool, int, str]:
    return not name.isdecimal(), int(name) if name.isdecimal() else 0, name


def _positions(values: list[str], names: list[str]) -> np.ndarray:
    position = {name: i for i, name in enumerate(names)}
    return np.array([position[value] for value in values], np.int64)
