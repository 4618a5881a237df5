"""Work split over torch's threads: every part once, faults raised, and children of a fork that do not wait for ever."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
import torch

from snn.kernels.native import threads


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def parts_of(total: int, least: int = 1) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    threads.in_parts(lambda start, stop: found.append((start, stop)), total, least=least)
    return sorted(found)


@pytest.mark.parametrize("region", [True, False], ids=["torch's threads", "own pool"])
def test_parts(monkeypatch: pytest.MonkeyPatch, region: bool) -> None:
    if not region:
        monkeypatch.setattr(threads, "_parallel_region", lambda: None)
    assert parts_of(10) == [(0, 3), (3, 6), (6, 10)]
    assert parts_of(10, least=4) == [(0, 5), (5, 10)]
    assert parts_of(2, least=4) == [(0, 2)]

    def fails(start: int, stop: int) -> None:
        if start == 3:
            raise ValueError("the second part")

    with pytest.raises(ValueError, match="the second part"):
        threads.in_parts(fails, 10)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch brings another OpenMP")
def test_torch_lends_its_threads() -> None:
    assert threads._parallel_region() is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_threads_of_its_own() -> None:
    parts_of(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if parts_of(10) == [(0, 3), (3, 6), (6, 10)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
