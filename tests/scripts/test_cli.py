"""One way in, and errors a person can act on."""

import argparse
import errno
import os
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from neuro import DataError
from scripts import cli

ROOT = Path(__file__).resolve().parents[2]


def fake_command(monkeypatch: pytest.MonkeyPatch, run) -> None:
    module = types.ModuleType("fake_command")
    module.HELP = "A command for tests."
    module.add_arguments = lambda parser: parser.add_argument("--number", type=int, default=0)
    module.run = run
    monkeypatch.setitem(sys.modules, "fake_command", module)
    monkeypatch.setitem(cli.COMMANDS, "fake", cli.Command("fake_command", "for tests"))


def raising(error: BaseException):
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


def test_help_lists_every_command_and_loads_no_library() -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "scripts.cli", "--help"], capture_output=True, text=True, check=True
    )
    assert all(name in result.stdout for name in cli.COMMANDS)
    assert "examples:" in result.stdout
    assert "torch" not in result.stderr and "numpy" not in result.stderr


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = cli.main([name, "--help"])
    except SystemExit as end:  # argparse ends the process itself
        code = end.code
    assert code == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) > 5
    assert "usage" in out.lower()


def test_arguments_reach_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_command(monkeypatch, lambda args: args.number)
    assert cli.main(["fake", "--number", "7"]) == 7


def test_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulat"]) == 2
    assert "did you mean `ranvier simulate`" in capsys.readouterr().err


def test_unknown_option_points_to_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--nonsense"]) == 2
    assert "--help" in capsys.readouterr().err


class SpecialError(DataError):
    pass


CASES = {
    "user's mistake": (DataError("label outside the set", found=41), 2, "label outside the set: found 41"),
    "its subclass": (SpecialError("word in no dictionary"), 2, "word in no dictionary"),
    "disk full": (OSError(errno.ENOSPC, "No space left on device", "/x/y.hdf5"), 2, "no space left on the device"),
    "disk full, from HDF5": (RuntimeError("(errno = 28, message = 'No space left on device')"), 2, "no space left"),
    "no such file": (FileNotFoundError(errno.ENOENT, "No such file or directory", "gone.ckpt"), 2, "gone.ckpt"),
    "interrupted": (KeyboardInterrupt(), 130, "interrupted"),
    "missing package": (ModuleNotFoundError("No module", name="pytorch_lightning"), 2, "ranvier[train]"),
    "from a worker": (
        DataError(
            "Caught DataError in worker 0.\nOriginal Traceback (most recent call):\n  f\nneuro.DataError: bad: 3"
        ),
        2,
        "ranvier fake: bad: 3",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_are_one_sentence(case: str, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    error, code, words = CASES[case]
    fake_command(monkeypatch, raising(error))
    assert cli.main(["fake"]) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_debug_shows_the_trace(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake_command(monkeypatch, raising(DataError("bad")))
    assert cli.main(["fake", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_of_ours_is_not_dressed_up_as_the_users(monkeypatch) -> None:
    fake_command(monkeypatch, raising(ValueError("internal")))
    with pytest.raises(ValueError, match="internal"):
        cli.main(["fake"])


def test_a_missing_package_that_no_extra_brings_is_not_explained() -> None:
    assert cli.explain(ModuleNotFoundError("No module", name="surely_not_there")) is None


def test_a_closed_pipe_is_quiet() -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from scripts import cli; cli.EXAMPLES *= 20000; sys.exit(cli.main(['-h']))",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Unbuffered, Python drops what a pipe did not take and never hears that it is closed.
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    assert process.stdout is not None and process.stderr is not None
    os.read(process.stdout.fileno(), 100)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == cli.PIPE_CLOSED


def test_termination_ends_a_command_as_ctrl_c_does(tmp_path: Path) -> None:
    """What is half written goes, whatever the signal; a service manager and `kill` send SIGTERM."""
    folder = tmp_path / "made"
    command = [sys.executable, "-m", "scripts.cli", "simulate", str(folder), "--sessions", "2", "--trials", "400"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT)
    while child.poll() is None and not list(tmp_path.iterdir()):
        time.sleep(0.02)
    child.terminate()
    _, words = child.communicate(timeout=900)
    assert child.returncode == 143 and words.endswith("ranvier simulate: terminated\n"), words
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_known_behind_another_error() -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise RuntimeError("inline_container.cc: unexpected pos 8064 vs 7958")  # noqa: B904 - as torch raises it
    except RuntimeError as error:
        assert cli.is_disk_full(error) and "no space left" in str(cli.explain(error))
    assert not cli.is_disk_full(RuntimeError("something else"))
