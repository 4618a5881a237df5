"""``ranvier train``: fit a recipe, go on with a run that was stopped, score a run's best checkpoint."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from neuro.errors import DataError

CONFIGS = Path(__file__).parent / "configs"
"""The packaged recipes."""

BASE = "base"
"""The recipe under every other one."""

HELP = """\
Fit a phoneme decoder.

  ranvier train fit --config RECIPE --data.path DIR      start a run
  ranvier train fit --run runs/NAME --resume             go on with one that was stopped or killed
  ranvier train validate --run runs/NAME                 score its best checkpoint on the validation split

A recipe is a YAML file of your own or the name of one of those below. Every recipe starts from `base`; several may be
given, later ones win, and single values are set by name:

  ranvier train fit --config gru_500k --data.path data/t15 --model.budget 2M --model.lr 2e-3 --trainer.max_steps 20000

A run's folder (runs/RECIPE, or --run DIR) gets config.yaml, learning_curve.csv, tensorboard/, and
checkpoints/best.ckpt (lowest validation PER) and last.ckpt. Ctrl-C saves and stops; a resumed run ends with the same
weights, bit for bit on a CPU, as one that was never stopped. An existing folder is never overwritten.

More:
  --checkpoint.every_minutes 5 --checkpoint.every_steps 500    how much work a power cut may cost
  --trainer.precision bf16-mixed                               half precision
  --trainer.devices 4 --trainer.strategy ddp                   four processes; batch_size is over all of them
  --print_config                                               the whole recipe, every value in it
  ranvier train fit --help                                     every option
  tensorboard --logdir runs                                    curves of all runs
"""


class Request(NamedTuple):
    """What the command line asks for, as far as it concerns folders and recipes."""

    subcommand: str
    run: Path
    resume: bool
    only_print: bool
    argv: list[str]


def run_argv(argv: Sequence[str]) -> int:
    """Run ``ranvier train`` with these arguments; returns the exit code.

    Raises
    ------
    DataError
        For an unknown recipe, a run's folder that exists, or faulty data.
    """
    argv = list(argv)
    if not argv or argv[0] in ("-h", "--help"):
        print(overview())
        return 0
    if any(argument in ("-h", "--help") for argument in argv):
        request = Request(argv[0], Path(), False, True, argv)
    else:
        request = read_request(argv)
        check_folder(request)
    # Lightning takes seconds to import: only now, when there is something to do.
    from scripts.training_cli import fit_or_validate

    _quiet()  # not before: the import turns the announcements on again
    return fit_or_validate(request)


def overview() -> str:
    """Text of ``ranvier train --help``: how to use it, and the packaged recipes."""
    width = max(map(len, recipes())) + 2
    lines = [f"  {name:<{width}}{_first_comment(path)}" for name, path in recipes().items()]
    return f"usage: ranvier train {{fit,validate}} ...\n\n{HELP}\nrecipes:\n" + "\n".join(lines)


def recipes() -> dict[str, Path]:
    """Packaged recipes by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"))}


def find_recipe(name: str) -> Path:
    """The file that a recipe's name or path means.

    Raises
    ------
    DataError
        If there is neither a file nor a packaged recipe of that name.
    """
    if Path(name).is_file():
        return Path(name)
    known = recipes()
    if name.removesuffix(".yaml") in known:
        return known[name.removesuffix(".yaml")]
    raise DataError(
        "no such recipe", field="--config", found=name, expected=f"a YAML file, or one of {', '.join(known)}"
    )


def read_request(argv: list[str]) -> Request:
    """Find the run's folder, and turn names of recipes into files."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--config", action="append", default=[])
    parser.add_argument("--run")
    parser.add_argument("--resume", action="store_true")
    known, rest = parser.parse_known_args(argv[1:])
    subcommand = argv[0]
    files = [find_recipe(name) for name in known.config]
    if known.run is None and not files:
        raise DataError("name a recipe with --config, or the folder of a run with --run", field=f"train {subcommand}")
    run = Path(known.run) if known.run else Path("runs") / files[-1].stem
    saved = run / "config.yaml"
    if subcommand != "fit" or known.resume:
        if saved.is_file():
            files.insert(0, saved)
        elif not files:
            raise DataError("no run in this folder: it has no config.yaml", file=run)
    configs = [part for file in files for part in ("--config", str(file))]
    # Recipes first: values given by name win over every file.
    return Request(subcommand, run, known.resume, "--print_config" in " ".join(rest), [subcommand, *configs, *rest])


def check_folder(request: Request) -> None:
    """Refuse to write into the folder of another run.

    Raises
    ------
    DataError
        If the folder exists, is not empty, and ``--resume`` was not given.
    """
    if request.subcommand != "fit" or request.resume or request.only_print or _rank() > 0:
        return
    if request.run.exists() and (not request.run.is_dir() or any(map(_of_a_run, request.run.iterdir()))):
        raise DataError(
            "the run's folder exists already; go on with it by adding --resume, or name another with --run",
            file=request.run,
        )


def _of_a_run(entry: Path) -> bool:
    """Whether an entry of a folder is worth keeping: a run that never began leaves its lock and an empty log."""
    return entry.name != "tensorboard" and not entry.name.startswith(".")


def _rank() -> int:
    names = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), 0)


def _first_comment(path: Path) -> str:
    first = path.read_text().splitlines()[0]
    return first.lstrip("# ") if first.startswith("#") else ""


def _quiet() -> None:
    """Lightning's announcements off; warnings as one line each, without a source line."""
    for name in ("pytorch_lightning", "lightning_fabric", "lightning"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for noise in (
        ".*does not have many workers.*",
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*number of training batches .* is smaller than the logging interval.*",
        ".*Starting from v1.9.0, `tensorboardX`.*",
        ".*isinstance.*LeafSpec.*",
    ):
        warnings.filterwarnings("ignore", noise)
    warnings.showwarning = _one_line  # type: ignore[assignment]


def _one_line(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    if issubclass(category, (DeprecationWarning, FutureWarning, PendingDeprecationWarning)):
        return
    print(f"warning: {message}", file=sys.stderr)
