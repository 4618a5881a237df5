"""The house rules that a machine can check: who imports whom, what may be written where, and that tables are whole."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Room -> the rooms it may import. `scripts` may import everything.
ALLOWED = {
    "neuro": set(),
    "snn": set(),
    "decoders": {"neuro", "snn"},
    "audio": {"neuro", "snn"},
    "hardware": {"snn"},
    "scripts": {"neuro", "snn", "decoders", "audio", "hardware"},
}

# What the base install does not have; only the modules of a command that needs them may import these at the top.
OPTIONAL = {
    "pytorch_lightning",
    "lightning",
    "torchaudio",
    "matplotlib",
    "jsonargparse",
    "snntorch",
    "tensorboard",
    "sklearn",
    "flashlight",
    "kenlm",
    "jiwer",
    "transformers",
}


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def imported(path: Path, *, top_level_only: bool = False) -> set[str]:
    """First part of every module that a file imports."""
    tree = ast.parse(path.read_text(), str(path))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("room", sorted(room for room in ALLOWED if (ROOT / room).is_dir()))
def test_no_room_imports_one_above_it(room: str) -> None:
    forbidden = set(ALLOWED) - ALLOWED[room] - {room}
    offenders = {
        str(path.relative_to(ROOT)): bad for path in sources(room) if (bad := imported(path) & (forbidden | {"tests"}))
    }
    assert not offenders, f"{room} may import only {sorted(ALLOWED[room]) or 'nothing of ours'}"


def test_the_import_check_sees_every_spelling(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text("import neuro.trial as t\ndef f():\n    from decoders.ctc import x\n    import snn\n")
    assert imported(example) == {"neuro", "decoders", "snn"}
    assert imported(example, top_level_only=True) == {"neuro"}


@pytest.mark.slow  # starts Python anew
@pytest.mark.parametrize("room", ["neuro", "snn", "decoders", "hardware"])
def test_rooms_import_with_the_base_install_alone(room: str) -> None:
    code = (
        "import sys\n"
        f"class Absent:\n"
        f"    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {OPTIONAL!r}: raise ModuleNotFoundError(name, name=name)\n"
        f"sys.meta_path.insert(0, Absent())\n"
        f"import {room}\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_no_path_of_one_machine_is_written_anywhere() -> None:
    machine = re.compile(r"(?<![\w.$}])/(home|Users|work|root|mnt|scratch|oak)/\w")
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".cfg", ""} and path.name != "test_house.py"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if machine.search(line)
    ]
    assert not offenders


def test_no_large_or_binary_clutter_is_committed() -> None:
    too_large = [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 200_000]
    clutter = [str(p.relative_to(ROOT)) for p in tracked() if p.suffix in {".ipynb", ".pyc", ".ckpt", ".pt", ".hdf5"}]
    assert not too_large and not clutter


def test_files_stay_readable_in_one_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources("neuro", "snn", "decoders", "hardware", "scripts")
        if (lines := len(path.read_text().splitlines())) > 420
    }
    assert not long, "split these files: one operator, model, format or command a file"


def test_nothing_unfinished_ships() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplemented)\b")
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources("neuro", "snn", "decoders", "hardware", "scripts")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if marks.search(line)
    ]
    assert not offenders


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources("neuro", "snn", "decoders", "hardware", "scripts")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent


# Table -> what every entry must be.
TABLES = {
    ("neuro.formats", "FORMATS"): lambda entry: all(callable(getattr(entry, name)) for name in ("detect", "open")),
    ("decoders.cores", "CORES"): callable,
    ("scripts.cli", "COMMANDS"): lambda entry: bool(find_spec(entry.module) and entry.summary),
    ("scripts.bench", "BENCHES"): lambda entry: bool(find_spec(entry.module) and entry.summary),
    ("scripts.convert", "SUBCOMMANDS"): lambda entry: bool(find_spec(entry.module) and entry.summary),
    ("scripts.study", "STUDIES"): lambda entry: bool(find_spec(entry.module) and entry.summary),
    ("neuro.augment", "AUGMENTATIONS"): callable,
    ("snn.surrogate", "SURROGATES"): callable,
    ("scripts.plots", "PLOTS"): callable,
    ("snn.ms_resnet", "STEMS"): callable,
    ("snn.conv", "SPATIAL_READOUTS"): callable,
    ("decoders.text", "LANGUAGE_MODELS"): callable,
}


@pytest.mark.parametrize(("module", "table"), sorted(TABLES))
def test_tables_are_whole(module: str, table: str) -> None:
    entries = getattr(importlib.import_module(module), table)
    assert entries, f"{module}.{table} is empty"
    for name, entry in entries.items():
        assert isinstance(name, str) and name
        assert TABLES[module, table](entry), f"{module}.{table}[{name!r}] is not whole"


def test_every_file_beside_a_table_is_listed_in_it() -> None:
    from scripts.cli import COMMANDS

    listed = {command.module for command in COMMANDS.values()}
    commands = {
        f"scripts.{path.stem}"
        for path in (ROOT / "scripts").glob("*.py")
        if re.search(r"^def (run|run_argv)\(", path.read_text(), re.MULTILINE)
    }
    assert commands == listed
