"""What a bench prints and writes, from figures that are given."""

import argparse
import json

import pytest

from scripts.benches import timing
from scripts.benches.timing import Limit, Measured, Row

ROWS = [
    Row("one case", Measured("ours", 0.0123, 0.012, 0.013, 0.011, 4.0), 1.0, 1.0),
    Row("one case", Measured("theirs", 0.123, 0.12, 0.13, 0.11), 10.0, 10.0, 8.0),
    Row("other case", Measured("ours", 2e-6, 1e-6, 3e-6, 1e-6), 1.0, 1.0),
]


def test_a_page_and_the_figures_are_written_beside_each_other(tmp_path, capsys):
    args = argparse.Namespace(json=False, out=tmp_path / "speed.json")
    assert timing.finish(args, "bench x", ROWS, ["said", Limit("took", 1.0, 1.5, " ms")]) == 0
    page = (tmp_path / "speed.md").read_text()
    assert "## one case" in page and "| theirs | 123 | 120-130 | 10.00 | 10.00 | 8: yes | - |" in page
    assert "| ours | 0.00200 | 0.00100-0.00300 |" in page and "- took 1.00 ms (promised 1.5: yes)" in page
    assert "speed.png" not in page and timing.machine()["torch"] in page
    assert [row["case"] for row in json.loads(args.out.read_text())["rows"]] == [row.case for row in ROWS]
    assert "theirs" in capsys.readouterr().out


@pytest.mark.parametrize("missed", [[Limit("took", 2.0, 1.5)], []])
def test_a_missed_promise_is_the_exit_code(missed, capsys):
    rows = ROWS if missed else [Row("case", Measured("theirs", 1.0, 1.0, 1.0, 1.0), 7.9, 9.0, 8.0)]
    assert timing.finish(argparse.Namespace(json=False, out=None), "bench x", rows, missed) == 1
    assert "1 of the promised" in capsys.readouterr().out.replace("\n", " ")
