"""Speed tables as a Markdown page, to be kept or published with its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scripts.benches.timing import Row

LEGEND = (
    "ms: median of a call, and quartiles; x ours: that over ours; fastest: the same for the fastest calls, which a "
    "busy machine disturbs least; promised: what x ours should at least be on two idle cores; MiB: growth of memory in "
    "a call."
)


def page_lines(
    title: str, machine: Mapping[str, Any], rows: Sequence[Row], notes: Sequence[str], plot: str | None = None
) -> list[str]:
    """One table a case."""
    lines = [f"# {title}", "", ", ".join(f"{key} {value}" for key, value in machine.items()) + ".", "", LEGEND]
    for case in dict.fromkeys(row.case for row in rows):
        lines += ["", f"## {case}", "", "| contestant | ms | quartiles | x ours | fastest | promised | MiB |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
        lines += ["| " + " | ".join(cells(row)) + " |" for row in rows if row.case == case]
    lines += ["", *(f"- {note}" for note in dict.fromkeys(notes))]
    return [*lines, "", f"![{title}]({plot})"] if plot else lines


def cells(row: Row) -> list[str]:
    """What a table says of a contestant."""
    m = row.contestant
    return [
        m.name,
        short(1e3 * m.median),
        f"{short(1e3 * m.low)}-{short(1e3 * m.high)}",
        f"{row.ratio:.2f}",
        f"{row.ratio_best:.2f}",
        "" if row.least is None else f"{row.least:.3g}: {'yes' if row.ratio >= row.least else 'NO'}",
        "-" if m.peak_mib is None else f"{m.peak_mib:.1f}",
    ]


def short(number: float) -> str:
    """Three significant digits, never with an exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:#.3g}"
