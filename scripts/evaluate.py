"""``ranvier evaluate``: phoneme error rate per session and overall, with intervals, files and plots."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.output import check_free, new_folder

if TYPE_CHECKING:
    from scripts.evaluation.report import Report

HELP = """\
Scores a checkpoint on one split of a Brain-to-Text tree: phoneme error rate (PER) per session and overall, each with a
95 % bootstrap interval over sentences, beside what chance would reach.

Writes into the output folder: summary.json, sessions.csv, trials.csv (reference, hypothesis and edits of every trial),
and plots: learning curve, spike raster beside posteriors and alignment, phoneme confusion, entropy around boundaries.

examples:
  ranvier evaluate runs/my_run --data data/sim
  ranvier evaluate runs/my_run/checkpoints/best.ckpt --data data/b2t25 --split val --json
  ranvier evaluate data/t15_pretrained_rnn_baseline/checkpoint/best_checkpoint --official b2t25 --data data/b2t25
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier evaluate``."""
    add = parser.add_argument
    add("checkpoint", type=Path, help="a .ckpt file, or the folder of a run (its best checkpoint is taken)")
    add("--data", type=Path, required=True, help="folder of a Brain-to-Text tree, '25 or '24 form, or a ptDecoder file")
    add("--split", default="val", choices=("train", "val", "test"), help="which trials to score (default: val)")
    add("--out", type=Path, help="folder for the results (default: evaluation-SPLIT in the run's folder)")
    add("--overwrite", action="store_true", help="replace an output folder that this command wrote")
    add("--official", choices=("b2t24", "b2t25"), help="the checkpoint is a released one of this year's baseline")
    add(
        "--new-sessions",
        choices=("error", "previous"),
        default="error",
        help="sessions new to the checkpoint: stop, or use the day layer of the last one before (default: error)",
    )
    add("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (default: auto)")
    add("--batch-size", type=_positive, default=16, help="trials decoded together; changes no result (default: 16)")
    add("--source", help="what the data are, for titles (default: simulated or recorded, as the trials tell)")
    add("--bootstrap", type=_positive, default=2000, help="resamples for the intervals (default: 2000)")
    add("--seed", type=int, default=0, help="seed of the resampling (default: 0)")
    add("--no-plots", action="store_true", help="write numbers only")
    add("--json", action="store_true", help="print the summary as JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Score, write the folder, print one screen."""
    report = evaluate(args)
    if args.json:
        report.print_json()
    else:
        report.print()
    return 0


def evaluate(args: argparse.Namespace) -> Report:
    """Everything but the printing; ``demo`` calls this too.

    Raises
    ------
    DataError
        If the checkpoint and the data do not fit together, the split has no labels or no trials, or the output folder
        may not be written.
    """
    from decoders.scoring import Scores, decode
    from neuro import DataError, open_recordings
    from scripts.evaluation.boundaries import Boundaries
    from scripts.evaluation.checkpoint import load_checkpoint, plan_days
    from scripts.evaluation.figures import Example, write_figures
    from scripts.evaluation.report import Report, Timing
    from scripts.progress import progress_bar

    start = time.perf_counter()
    if args.seed < 0:
        raise DataError("a seed cannot be negative", field="--seed", found=args.seed)
    device = pick_device(args.device)
    loaded = load_checkpoint(args.checkpoint, official=args.official)
    out = args.out or loaded.folder / f"evaluation-{args.split}"
    check_free(out, overwrite=args.overwrite)
    recordings = open_recordings(args.data, normalize=loaded.normalize)
    view = labelled_split(recordings, args.split, args.data)
    days, borrowed = plan_days(loaded, view, unknown=args.new_sessions)
    scores, example, boundaries = Scores(), Example(), Boundaries(loaded.decoder)
    decoding = time.perf_counter()
    with progress_bar(f"decoding {args.split}", len(view), quiet=args.json) as advance:
        for decoded in decode(loaded.decoder, view, days, batch_size=args.batch_size, device=device, keep_spikes=True):
            scores.add(decoded)
            example.offer(decoded)
            boundaries.add(decoded)
            advance(len(decoded.hypotheses))
    timing = Timing(decoding=time.perf_counter() - decoding)
    report = Report.build(args, loaded, recordings, view, scores, example, boundaries, borrowed, timing)
    with new_folder(out, overwrite=args.overwrite) as folder:
        report.write(folder)
        if not args.no_plots:
            write_figures(folder, report, loaded, example, boundaries)
        timing.total = time.perf_counter() - start
        report.write_summary(folder)
    report.folder = out
    return report


def labelled_split(recordings: Any, split: str, path: Path) -> Any:
    """The split's view, or a DataError where it holds nothing to score.

    Raises
    ------
    DataError
        If the data have no such split, or it is empty or without labels.
    """
    from neuro import DataError

    view = recordings.split(split)
    if not view.has_labels:
        raise DataError(
            f"the {split} split has no labels, so it cannot be scored",
            file=path,
            expected=f"one of {', '.join(name for name in recordings.splits if recordings.split(name).has_labels)}",
        )
    return view


def pick_device(name: str) -> str:
    """``auto`` to the first CUDA device or the CPU; anything else is checked and handed back.

    Raises
    ------
    DataError
        If torch does not know the name or has no such device.
    """
    import torch

    from neuro import DataError

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DataError(
            "this device cannot be used; `ranvier doctor` shows those that can",
            field="--device",
            found=f"{name} ({str(error).splitlines()[0][:80]})",
        ) from error
    return name


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a number of 1 or more is needed: found {number}")
    return number
