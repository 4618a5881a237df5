import importlib
import subprocess
import sys

import pytest
import torch

import snn
from snn import dispatch
from snn.dispatch import Backend, BackendError


def call(**arguments):
    return snn.functional.lif(torch.ones(3, 1, 2), beta=0.5, **arguments)


@pytest.fixture
def ran(monkeypatch):
    """Adds two backends to `lif` that note when they run; `picky` refuses everything but float64."""
    seen = []

    def backend(name, priority, unavailable=None, refuses=lambda arguments: None):
        def run(**arguments):
            seen.append(name)
            return reference.run(**arguments)

        return Backend(name, priority, f"the {name} one", lambda: unavailable, refuses, run)

    (reference,) = (b for b in dispatch.backends("lif") if b.name == "reference")
    listed = (
        backend("good", 100),
        backend("picky", 200, refuses=lambda a: None if a["current"].dtype == torch.float64 else "only float64"),
        backend("absent", 300, unavailable="no such chip"),
        reference,
    )
    monkeypatch.setattr(sys.modules["snn.kernels.lif"], "BACKENDS", listed)
    dispatch.backends.cache_clear()
    yield seen
    dispatch.backends.cache_clear()


def test_the_best_one_that_can_run_is_taken(ran):
    call()
    snn.functional.lif(torch.ones(3, 1, 2, dtype=torch.float64), beta=0.5)
    assert ran == ["good", "picky"]


def test_argument_beats_block_beats_environment(ran, monkeypatch):
    monkeypatch.setenv("RANVIER_BACKEND", "lif=good")
    call()
    with snn.use_backend(lif="reference"):
        call()
        call(backend="good")
        with snn.use_backend("reference", lif="good"):
            call()
    monkeypatch.setenv("RANVIER_BACKEND", "reference")
    call()
    assert ran == ["good", "good", "good"]


@pytest.mark.parametrize(("name", "why"), [("picky", "only float64"), ("absent", "no such chip")])
def test_a_forced_backend_that_cannot_run_raises(ran, monkeypatch, name, why):
    with pytest.raises(BackendError, match=f"{name}.*argument.*{why}"):
        call(backend=name)
    with pytest.raises(BackendError, match=f"use_backend.*{why}"), snn.use_backend(lif=name):
        call()
    monkeypatch.setenv("RANVIER_BACKEND", f"lif={name}")
    with pytest.raises(BackendError, match=f"RANVIER_BACKEND.*{why}"):
        call()
    assert not ran


@pytest.mark.parametrize("setting", ["abacus", "lif=abacus", "lap=reference"])
def test_names_that_do_not_exist_are_refused(setting, monkeypatch):
    monkeypatch.setenv("RANVIER_BACKEND", setting)
    with pytest.raises(ValueError, match="expected one of"):
        call()
    with pytest.raises(ValueError, match="expected one of"), snn.use_backend(**{"lap": "reference"}):
        pass
    with pytest.raises(ValueError, match="expected one of"), snn.use_backend("abacus"):
        pass


def test_a_block_ends_even_after_an_error(ran):
    with pytest.raises(RuntimeError, match="stop"), snn.use_backend("reference"):
        raise RuntimeError("stop")
    call()
    assert ran == ["good"]


def test_explain_says_which_and_why(ran, monkeypatch):
    row = next(row for row in snn.explain() if row.operator == "lif" and row.device == "cpu")
    assert row.backend == "good"
    assert "the good one" in row.why and "picky: only float64" in row.why and "absent: no such chip" in row.why
    monkeypatch.setenv("RANVIER_BACKEND", "reference")
    assert all(row.why == "asked for by RANVIER_BACKEND" for row in snn.explain())
    monkeypatch.setenv("RANVIER_BACKEND", "lif=absent")
    row = next(row for row in snn.explain() if row.operator == "lif")
    assert row.backend == "none" and "no such chip" in row.why


@pytest.mark.parametrize("operator", dispatch.OPERATORS)
def test_every_backend_is_whole_and_runs_its_example_like_the_reference(operator):
    arguments = importlib.import_module(dispatch.OPERATORS[operator]).example(torch.device("cpu"), torch.float32)
    listed = dispatch.backends(operator)
    assert len({backend.name for backend in listed}) == len(listed) == len({b.priority for b in listed})
    assert "reference" in {backend.name for backend in listed}
    for backend in listed:
        assert backend.summary and "\n" not in backend.summary
        refusal = backend.refusal(arguments)
        assert refusal is None or len(refusal) > 5
        if refusal is None:
            torch.testing.assert_close(backend.run(**arguments), listed[-1].run(**arguments))


@pytest.mark.slow  # starts Python anew
def test_import_brings_no_framework():
    code = "import sys, snn; print(*sorted({'snntorch', 'numba', 'triton.compiler'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
