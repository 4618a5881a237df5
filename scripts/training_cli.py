"""The machinery behind ``ranvier train``: LightningCLI with our task, data, callbacks and folders."""

from __future__ import annotations

import argparse
import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pytorch_lightning import Trainer
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from pytorch_lightning.loggers import TensorBoardLogger
from rich.console import Console

from decoders.training import (
    Checkpoints,
    Interrupted,
    PhonemeTask,
    RecordingsData,
    best_checkpoint,
    last_checkpoint,
    make_trainer,
)
from neuro import DataError
from scripts.cli import first_line, is_disk_full
from scripts.output import only_one
from scripts.train import BASE, Request, recipes

OF_THE_CALL = ("run", "resume")
"""Options that belong to one call and not to the recipe, so that the saved recipe does not have them."""


class SaveRecipe(SaveConfigCallback):
    """Writes the whole recipe into the run's folder as ``config.yaml``, once the data and a checkpoint are accepted.

    Attributes
    ----------
    began : bool
        Whether an update has been made: what goes wrong before is a matter of options or data.
    """

    began = False
    first = 0

    def save_config(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Nothing yet: what was asked for may still be refused, and the saved recipe must stay what it was."""

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        """Note that an update has been made, and all that follows it."""
        self.began = trainer.global_step > self.first

    def on_train_end(self, trainer: Trainer, *_: Any) -> None:
        """Note it after the last one."""
        self.began = trainer.global_step > self.first

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Write it under another name and rename it."""
        self.first = trainer.global_step
        if not trainer.is_global_zero:
            return
        folder = Path(trainer.default_root_dir)
        folder.mkdir(parents=True, exist_ok=True)
        config = self.config.clone()
        for name in OF_THE_CALL:
            config.pop(name, None)
        partial = folder / f".config.yaml.partial-{os.getpid()}"
        partial.write_text(self.parser.dump(config, skip_none=False, skip_validation=True))
        partial.replace(folder / "config.yaml")


class TrainCLI(LightningCLI):
    """LightningCLI for one task and one kind of data, with a folder for each run."""

    recipe: SaveRecipe | None = None

    def __init__(self, request: Request, made: list[TrainCLI]) -> None:
        self.request = request
        made.append(self)  # known to the caller even if what follows fails
        # What the parser refuses is raised, to be told in one sentence, instead of printed below the whole usage.
        defaults = {"default_config_files": [str(recipes()[BASE])], "exit_on_error": False}
        super().__init__(
            PhonemeTask,
            RecordingsData,
            save_config_callback=None,
            seed_everything_default=1,
            parser_kwargs={
                "prog": "ranvier train",
                "exit_on_error": False,
                "fit": dict(defaults),
                "validate": dict(defaults),
            },
            args=request.argv,
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """What can be done; the run's folder decides on checkpoints."""
        ours = {"model", "datamodule", "ckpt_path", "weights_only"}
        return {"fit": ours | {"train_dataloaders", "val_dataloaders"}, "validate": ours | {"dataloaders", "verbose"}}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the run's folder and its checkpoints; let the data tell the model its sizes, one seed serve both."""
        parser.add_argument("--run", type=str | None, help="Folder of the run. Default: runs/RECIPE.")
        parser.add_argument("--resume", action="store_true", help="Go on from the last checkpoint in the run's folder.")
        parser.add_lightning_class_args(Checkpoints, "checkpoint")
        parser.link_arguments("data.n_channels", "model.n_channels", apply_on="instantiate")
        parser.link_arguments("data.n_days", "model.n_days", apply_on="instantiate")
        parser.link_arguments("seed_everything", "model.seed")
        parser.link_arguments("seed_everything", "data.seed")

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse the given arguments, whatever the process was called with."""
        self.config = parser.parse_args(args)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Trainer of the recipe, in the run's folder."""
        options = dict(self._get(self.config_init, "trainer"))
        fitting = self.subcommand == "fit"
        if options.get("logger") is None and fitting:
            options["logger"] = TensorBoardLogger(str(self.request.run), name="tensorboard", version="")
        callbacks = options.pop("callbacks", None) or []
        callbacks = callbacks if isinstance(callbacks, list) else [callbacks]
        if fitting:
            self.recipe = SaveRecipe(self._parser("fit"), self.config["fit"], save_to_log_dir=False)
            callbacks.append(self.recipe)
        options.pop("default_root_dir", None)
        options.pop("use_distributed_sampler", None)
        return make_trainer(
            self.request.run, checkpoints=self._get(self.config_init, "checkpoint"), callbacks=callbacks, **options
        )

    def fit(self, model: PhonemeTask, datamodule: RecordingsData) -> None:
        """Fit from the start, or from the run's last checkpoint."""
        start = last_checkpoint(self.request.run) if self.request.resume else None
        if self.trainer.is_global_zero:
            self._say(start)
        self.trainer.fit(model, datamodule=datamodule, ckpt_path=start)
        if self.trainer.is_global_zero:
            if start and self.recipe and not self.recipe.began:
                _console().print(
                    f"nothing left to do: the run was finished at update {self.trainer.global_step}; "
                    "a higher --trainer.max_steps goes further",
                    highlight=False,
                    soft_wrap=True,
                )
            self._conclude()

    def validate(self, model: PhonemeTask, datamodule: RecordingsData) -> None:
        """Score the run's best checkpoint on the validation split."""
        best = best_checkpoint(self.request.run)
        if best is None:
            raise DataError("the run has no best checkpoint yet", file=self.request.run)
        figures = self.trainer.validate(model, datamodule=datamodule, ckpt_path=best, verbose=False)
        for name, value in figures[0].items():
            _console().print(f"{name:<10}{value:.4f}", highlight=False)

    def _say(self, start: Path | None) -> None:
        counts = self.model.decoder.parameter_counts()
        sizes = ", ".join(f"{name} {counts[name]:,}" for name in ("core", "day", "head", "total") if name in counts)
        place = "from the start" if start is None else f"from {start}"
        if self.request.resume and start is None:
            place += " (no checkpoint was written yet)"
        console = _console()
        console.print(f"{self.model.hparams.core}: {sizes} parameters", highlight=False)
        console.print(f"run {self.request.run} {place}", highlight=False, markup=False)

    def _conclude(self) -> None:
        checkpoints = self.trainer.checkpoint_callback
        if not isinstance(checkpoints, Checkpoints) or checkpoints.best_step < 0:
            return
        _console().print(
            f"best validation PER {checkpoints.best_per:.2%} at update {checkpoints.best_step}: "
            f"{best_checkpoint(self.request.run)}\n"
            f"score it: ranvier evaluate {self.request.run} --data {self.datamodule.path}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def fit_or_validate(request: Request) -> int:
    """Do what was asked for; returns the exit code."""
    resume = f"ranvier train fit --run {request.run} --resume"
    made: list[TrainCLI] = []
    alone = request.subcommand == "fit" and not request.only_print and _is_first() and request.run.name
    try:
        with only_one(request.run, "another training is at work in this folder") if alone else nullcontext():
            TrainCLI(request, made)
    except (DataError, OSError, ModuleNotFoundError):
        raise
    except argparse.ArgumentError as error:
        raise refusal(error) from error
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if is_disk_full(error) or (made and made[0].recipe is not None and made[0].recipe.began):
            raise
        raise DataError(
            "training cannot start with these options", found=first_line(error), expected="see --debug for the place"
        ) from error
    except Interrupted as stopped:
        if _is_first():
            _console().print(f"{stopped}\nresume with: {resume}", highlight=False, markup=False, soft_wrap=True)
        return stopped.code
    except SystemExit as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            if last_checkpoint(request.run):
                text = f"stopped at once; what came after the last checkpoint is lost\nresume with: {resume}"
            else:
                text = "stopped before the first checkpoint"
            _console().print(text, highlight=False, markup=False, soft_wrap=True)
            return 130
        return int(ended.code or 0)
    return 0


def refusal(error: argparse.ArgumentError) -> DataError:
    """What the parser refused, as the user's mistake in one sentence.

    >>> print(refusal(argparse.ArgumentError(None, 'Parser key "model.lr":\\n  Expected a number. Got value: abc')))
    the option does not take this value (field model.lr): found abc, expected number
    """
    said = " ".join(str(error.message).split())
    named = re.match(r'Parser key "([^"]+)"', said)
    value = re.search(r"(?:Got value|Given value): (.*)$", said)
    # A union is refused type by type.
    kinds = re.findall(r"Expected an? (.+?)(?=\. Got value| - Expected| Given value|$)", said)
    if named and value and kinds:
        plain = [re.sub(r"<class '(.*?)'>", r"\1", kind.removeprefix("typing.")) for kind in kinds]
        return DataError(
            "the option does not take this value", field=named[1], found=value[1],
            expected=" or ".join(kind for kind in plain if kind != "NoneType"),
        )  # fmt: skip
    return DataError(f"training cannot start with these options: {said}; see ranvier train fit --help")


def _console() -> Console:
    return Console(stderr=True)


def _is_first() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0"
