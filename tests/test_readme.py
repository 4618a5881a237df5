"""What the README tells people to type must work."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from neuro import DataError
from scripts import cli

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


COMMANDS = [
    line.removeprefix("ranvier ").strip()
    for block in blocks("sh")
    for line in block.splitlines()
    if line.startswith("ranvier ")
]
# Quick enough to run as they stand; the others are parsed as the command itself would parse them.
CHEAP = {"--help", "doctor"}


def test_the_readme_has_commands_to_check() -> None:
    assert len(COMMANDS) > 10 and set(COMMANDS) >= CHEAP


@pytest.mark.parametrize("command", sorted(CHEAP))
def test_cheap_commands_run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(shlex.split(command)) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - CHEAP))
def test_other_commands_are_understood(command: str) -> None:
    name, *arguments = shlex.split(command)
    module = importlib.import_module(cli.COMMANDS[name].module)
    if name == "train":
        if "--resume" in arguments:
            with pytest.raises(DataError, match="no run in this folder"):
                module.read_request(arguments)
            return
        request = module.read_request(arguments)
        assert request.subcommand == "fit"
        check_training_options(request.argv)
        return
    parser = argparse.ArgumentParser(exit_on_error=False)
    module.add_arguments(parser)
    parser.parse_args(arguments)


def check_training_options(argv: list[str]) -> None:
    """Every option by name must be one that the task, the data or the trainer takes."""
    pytest.importorskip("pytorch_lightning", reason="training needs ranvier[train]")
    import inspect

    from pytorch_lightning import Trainer

    from decoders.training.data import RecordingsData
    from decoders.training.task import PhonemeTask

    owners = {"model": PhonemeTask, "data": RecordingsData, "trainer": Trainer}
    for option in (word for word in argv if re.match(r"--\w+\.", word)):
        owner, parameter = option.removeprefix("--").split(".")[:2]
        assert parameter in inspect.signature(owners[owner]).parameters, option


@pytest.mark.parametrize("target", re.findall(r"`?make ([a-z-]+)`?", README))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_examples_run(number: int) -> None:
    result = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_every_command_and_recipe_family_is_mentioned() -> None:
    assert all(f"`ranvier {name}`" in README for name in cli.COMMANDS)


def test_links_to_files_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_packages_of_the_extras_table_are_those_of_the_project() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", README[README.index("## Extras") :], re.MULTILINE))
    for extra in ("train", "bench", "dev"):
        wanted = " ".join(extras[extra]).lower().replace("-", " ")
        for word in re.split(r",\s*", rows[extra].strip()):
            assert word.lower().split()[-1] in wanted, f"{extra}: {word}"
