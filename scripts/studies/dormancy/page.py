"""The page of `ranvier study dormancy`: a section for each experiment that has a record."""

from __future__ import annotations

from pathlib import Path

from neuro import DataError
from scripts.studies.dormancy.experiments import EXPERIMENTS
from scripts.studies.dormancy.plan import Records
from scripts.studies.dormancy.record import Record, read_record

PAGE = "dormancy"
"""Name of the page, and of the folder of its records beside it."""

CONVENTIONS = """\
Synaptic energy: operations that a synapse really makes on the test samples, priced at 45 nm, 32 bit (an accumulate for
a spike, a multiply-accumulate for analogue input). "Saved" is against the LIF network of the same weights at the start,
the same batches and as many updates. **Per-neuron** (the published accounting): a spike that arrives at a sleeping
neuron costs nothing. **Strict**: it costs nothing only where no neuron awake needs the sum. The analogue first layer is
left out unless a column says otherwise; "counted once" counts it once an image instead of at every step. Last weights;
nothing is chosen on test. ± is the standard deviation over seeds, paired for differences.
"""


def read_records(folder: Path) -> dict[str, dict[str, Record]]:
    """The records in a folder, by experiment and name.

    Raises
    ------
    DataError
        If a file is no record, or is one of an unknown experiment.
    """
    found: dict[str, dict[str, Record]] = {name: {} for name in EXPERIMENTS}
    for path in sorted(folder.glob("*.json")):
        record = read_record(path)
        assert record is not None  # the file is there
        if record.experiment not in found:
            raise DataError(
                "record of an unknown experiment", file=path, field="experiment", found=record.experiment,
                expected=", ".join(EXPERIMENTS),
            )  # fmt: skip
        found[record.experiment][record.name] = record
    return found


def write_page(out: Path) -> Path:
    """Write the page and its plots from the records that are there; an older page is replaced whole.

    Raises
    ------
    DataError
        If there is no record.
    """
    found = read_records(out / PAGE)
    if not any(found.values()):
        raise DataError("no run of this study is finished", file=out / PAGE)
    lines = ["# Dormant neurons: accuracy and energy", "", CONVENTIONS, "Command: `ranvier study dormancy`.", ""]
    for name, records in found.items():
        if records:
            lines += section_lines(name, records, out)
    page = out / f"{PAGE}.md"
    partial = page.with_suffix(".md.partial")
    partial.write_text("\n".join(lines).rstrip() + "\n")
    return partial.replace(page)


def section_lines(name: str, records: Records, out: Path) -> list[str]:
    """The section of an experiment; its plots are written on the way."""
    from scripts.plots.style import save

    experiment = EXPERIMENTS[name]
    lines = [f"## {experiment.title}", "", *experiment.section(records), ""]
    planned = {run.name for run in experiment.runs(experiment.seeds)}
    if planned - {*records}:
        lines += [f"Not finished yet: {len(planned & {*records})} of {len(planned)} runs.", ""]
    for part, draw in experiment.figures.items():
        if (figure := draw(records)) is not None:
            path = out / f"{PAGE}-{name}-{part}.png"
            save(figure, path)
            lines += [f"![{experiment.title}: {part.replace('-', ' ')}]({path.name})", ""]
    return lines
