"""Find a checkpoint, load it safely, and check that it fits the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuro import DataError

BEST = ("best.ckpt", "best*.ckpt", "checkpoints/best*.ckpt", "*/best*.ckpt", "*/checkpoints/best*.ckpt")
"""Where a run keeps its best checkpoint, nearest first."""


@dataclass(frozen=True)
class Loaded:
    """A decoder with what is known about where it comes from.

    Attributes
    ----------
    decoder : Module
        In evaluation mode.
    name : str
        For titles and tables.
    path, folder : Path
        The file, and the run's folder.
    sessions : list of str, or None
        Those that the day layers belong to, in their order; None where the checkpoint does not tell.
    recordings : dict
        What it was trained on; empty where the checkpoint does not tell.
    official : str, or None
        Form of the released baseline.
    """

    decoder: Any
    name: str
    path: Path
    folder: Path
    sessions: list[str] | None
    recordings: dict[str, Any] = field(default_factory=dict)
    official: str | None = None

    @property
    def normalize(self) -> str:
        """How the features were normalised in training."""
        return self.recordings.get("normalize", "auto")


def load_checkpoint(path: Path, *, official: str | None = None) -> Loaded:
    """Load a checkpoint of ours, or a released one by its form.

    Raises
    ------
    DataError
        If there is none, it is damaged, or it is of another kind.
    """
    file = find_checkpoint(path)
    return _load_official(file, official) if official else _load_ours(file)


def find_checkpoint(path: Path) -> Path:
    """The file itself, or the best checkpoint in a run's folder.

    Raises
    ------
    DataError
        If there is none, or several.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError("no such checkpoint, and no such folder of a run", file=path)
    for pattern in BEST:
        found = sorted(path.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            raise DataError("several checkpoints here; name one", file=path, found=", ".join(map(str, found[:8])))
    others = sorted(path.rglob("*.ckpt"))
    raise DataError(
        "no best checkpoint in this folder" + ("; these may be named" if others else ""),
        file=path,
        found=", ".join(map(str, others[:8])) or None,
    )


def plan_days(loaded: Loaded, view: Any, *, unknown: str) -> tuple[dict[str, int] | None, dict[str, str]]:
    """Day layer of each session to score, and which sessions borrow another's; checks channels on the way.

    Raises
    ------
    DataError
        If channels differ, or a session has no layer and ``unknown`` is "error".
    """
    from decoders.scoring import day_indices

    expected = loaded.decoder.n_channels
    if view.n_channels != expected:
        raise DataError(
            "the checkpoint was trained on another number of channels than these data have",
            file=loaded.path,
            found=view.n_channels,
            expected=expected,
        )
    if not loaded.decoder.n_days:
        return None, {}
    wanted = sorted({ref.session for ref in view.refs})
    return day_indices(wanted, _sessions_of(loaded, view), unknown=unknown)


def _sessions_of(loaded: Loaded, view: Any) -> list[str]:
    if loaded.sessions is not None:
        return loaded.sessions
    # A released checkpoint numbers its days in the order of the release's sessions, and does not name them.
    if len(view.sessions) == loaded.decoder.n_days:
        return view.sessions
    raise DataError(
        "the checkpoint does not name its sessions, so the data must hold every session of the release",
        file=loaded.path,
        found=f"{len(view.sessions)} sessions",
        expected=loaded.decoder.n_days,
    )


def _run_folder(file: Path) -> Path:
    return file.parent.parent if file.parent.name in ("checkpoints", "checkpoint") else file.parent


def _load_ours(file: Path) -> Loaded:
    from decoders.training.task import PhonemeTask

    task = PhonemeTask.load(file)
    folder = _run_folder(file)
    return Loaded(
        decoder=task.decoder,
        name=f"{task.options['core']} ({folder.name})",
        path=file,
        folder=folder,
        sessions=task.recordings.get("sessions"),
        recordings=task.recordings,
    )


def _load_official(file: Path, form: str) -> Loaded:
    from decoders import load_official

    return Loaded(
        decoder=load_official(file, form),
        name=f"official {form} baseline",
        path=file,
        folder=_run_folder(file),
        sessions=SESSION_LISTS[form](file),
        official=form,
    )


def _sessions_from_args(file: Path) -> list[str] | None:
    """Sessions of a '25 checkpoint, from the args.yaml that the release puts beside it."""
    beside = file.parent / "args.yaml"
    if not beside.is_file():
        return None
    import yaml

    try:
        sessions = yaml.safe_load(beside.read_text())["dataset"]["sessions"]
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise DataError("no list of sessions under dataset.sessions", file=beside) from error
    return [str(name) for name in sessions]


def _no_sessions(file: Path) -> None:
    return None


SESSION_LISTS: dict[str, Callable[[Path], list[str] | None]] = {"b2t24": _no_sessions, "b2t25": _sessions_from_args}
"""For each release: where the names of a checkpoint's sessions are; None for nowhere."""
