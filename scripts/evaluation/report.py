"""What an evaluation found: as files, as JSON, and as one screen."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuro import BIN_SECONDS
from neuro.phonemes import SYMBOLS
from scripts.output import plain, write_csv, write_json

if TYPE_CHECKING:
    from decoders.scoring import Scores
    from scripts.evaluation.boundaries import Boundaries
    from scripts.evaluation.checkpoint import Loaded
    from scripts.evaluation.figures import Example

CHANCE_NAMES = {
    "best_constant": "chance (best constant)",
    "empty": "empty output",
    "sil_run": "run of SIL",
}


@dataclass
class Timing:
    """Wall-clock seconds: decoding the trials, and everything."""

    decoding: float
    total: float = float("nan")


@dataclass
class Report:
    """One evaluation, ready to print and write.

    Attributes
    ----------
    source : str
        ``simulated participant``, ``recorded`` or what the user said.
    summary : dict
        What summary.json holds; rates are fractions.
    """

    source: str
    split: str
    scores: Scores
    summary: dict[str, Any]
    timing: Timing
    folder: Path | None = None
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def build(
        cls,
        args: argparse.Namespace,
        loaded: Loaded,
        recordings: Any,
        view: Any,
        scores: Scores,
        example: Example,
        boundaries: Boundaries,
        borrowed: dict[str, str],
        timing: Timing,
    ) -> Report:
        """Put rates, intervals and chance together."""
        from decoders.metrics import bootstrap_interval

        source = args.source or source_of(view, example)
        warnings = [
            f"session {new} is new to the checkpoint: it was decoded with the day layer of {old}"
            for new, old in borrowed.items()
        ]

        def scored(part: Scores) -> dict[str, Any]:
            interval = bootstrap_interval(part.references, part.hypotheses, n_resamples=args.bootstrap, seed=args.seed)
            counts = part.counts
            return {
                "per": interval.value,
                "per_low": interval.low,
                "per_high": interval.high,
                "trials": len(part.trials),
                "phonemes": counts.length,
                "substitutions": counts.substitutions,
                "insertions": counts.insertions,
                "deletions": counts.deletions,
            }

        warnings += untrained_days(loaded, recordings, view)
        chance, note = chance_of(recordings, scores)
        if note:
            warnings.append(note)
        if boundaries.missing:
            warnings.append(boundaries.missing)
        summary: dict[str, Any] = {
            "checkpoint": loaded.path,
            "model": loaded.name,
            "data": args.data,
            "source": source,
            "form": view.form,
            "split": args.split,
            "unit": "PER: edits per reference phoneme, greedy CTC decoding, no language model",
            "interval": f"95 % bootstrap over sentences, {args.bootstrap} resamples, seed {args.seed}",
            **scored(scores),
            "chance": chance,
            "sessions": {name: scored(part) for name, part in scores.sessions().items()},
            "parameters": loaded.decoder.parameter_counts(),
            "spike_rate": scores.spike_rate,
            "spike_rate_unit": "spikes per neuron and step, mean over all neurons",
            "spike_rate_layers": scores.layer_rates,
            "boundaries": boundaries.summary(),
            "seconds_of_data": float(view.lengths().sum()) * BIN_SECONDS,
            "warnings": warnings,
        }
        return cls(source, args.split, scores, summary, timing, warnings=warnings)

    def write(self, folder: Path) -> None:
        """Write trials.csv and sessions.csv."""
        trials = sorted(self.scores.trials, key=lambda trial: trial.key)
        write_csv(
            folder / "trials.csv",
            ("key", "session", "sentence", "reference", "hypothesis", "edits", "length", "per"),
            (
                (t.key, t.session, t.sentence, spell(t.reference), spell(t.hypothesis), t.counts.edits,
                 t.counts.length, f"{t.counts.rate:.4f}")
                for t in trials
            ),
        )  # fmt: skip
        columns = ("per", "per_low", "per_high", "trials", "phonemes", "substitutions", "insertions", "deletions")
        write_csv(
            folder / "sessions.csv",
            ("session", *columns),
            ((name, *(row[column] for column in columns)) for name, row in self.summary["sessions"].items()),
        )

    def write_summary(self, folder: Path) -> None:
        """Write summary.json, with the times."""
        self.summary["seconds"] = {"decoding": self.timing.decoding, "total": self.timing.total}
        write_json(folder / "summary.json", self.summary)

    def print_json(self) -> None:
        """Print the summary and where the other files are."""
        print_json({**self.summary, "folder": self.folder})

    def print(self) -> None:
        """One screen: sessions, overall, chance, sizes."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        console = Console()
        summary = self.summary
        table = Table(title=f"{summary['model']}: {self.split} split, {self.source}")
        table.add_column("session")
        for name in ("trials", "PER %", "95 % interval"):
            table.add_column(name, justify="right")
        for name, row in summary["sessions"].items():
            table.add_row(escape(name), str(row["trials"]), percent(row["per"]), interval(row))
        table.add_section()
        table.add_row("all", str(summary["trials"]), percent(summary["per"]), interval(summary), style="bold")
        for name, value in (summary["chance"] or {}).items():
            table.add_row(CHANCE_NAMES.get(name, name), "", percent(value), "", style="dim")
        console.print(table)
        counts = summary["parameters"]
        console.print(f"parameters: core {counts['core']:,}, total {counts['total']:,}, used {counts['used']:,}")
        if summary["spike_rate"] is not None:
            console.print(f"spikes: {100 * summary['spike_rate']:.1f} % of neurons active per step")
        console.print(
            f"time: {self.timing.decoding:.1f} s to decode {summary['seconds_of_data']:.0f} s of data, "
            f"{self.timing.total:.1f} s in all"
        )
        for warning in self.warnings:
            console.print(f"note: {warning}", style="yellow", markup=False)
        console.print(f"results: {self.folder}", markup=False)


def source_of(view: Any, example: Example) -> str:
    """Simulated or recorded, by what the trials tell: true onsets, or dates long before any release."""
    from neuro.simulate.calendar import FIRST_DAY

    years = [ref.session.partition(".")[2][:4] for ref in view.refs]
    dated_early = all(year.isdigit() and int(year) < FIRST_DAY.year + 10 for year in years)
    return "simulated participant" if example.simulated or dated_early else "recorded"


def untrained_days(loaded: Loaded, recordings: Any, view: Any) -> list[str]:
    """A note on sessions whose day layer saw no trial in training, as far as these data tell."""
    if not loaded.decoder.n_days or "train" not in recordings.splits:
        return []
    trained = {ref.session for ref in recordings.split("train").refs}
    untrained = sorted({ref.session for ref in view.refs} - trained)
    if not untrained:
        return []
    return [
        f"no training trials in these data for {', '.join(untrained)}: their day layers may never have been trained"
    ]


def chance_of(recordings: Any, scores: Scores) -> tuple[dict[str, float] | None, str | None]:
    """PER that needs no recording, chosen on the training labels; None and the reason where there are none."""
    from decoders.chance import chance_rates

    if "train" not in recordings.splits or not recordings.split("train").has_labels:
        return None, "no chance level: it is found on training labels, and the data have none"
    return chance_rates(recordings.split("train").labels(), scores.references), None


def print_json(content: dict[str, Any]) -> None:
    """Print on stdout what `write_json` would write."""
    print(json.dumps(plain(content), indent=2))


def spell(labels: list[int]) -> str:
    """Phoneme ids as symbols with blanks between."""
    return " ".join(SYMBOLS[label] for label in labels)


def percent(rate: float) -> str:
    """A fraction as per cent with one decimal."""
    return f"{100 * rate:.1f}"


def interval(row: dict[str, Any]) -> str:
    """The bootstrap interval of a row in per cent."""
    return f"{percent(row['per_low'])} to {percent(row['per_high'])}"
