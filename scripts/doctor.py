"""``ranvier doctor``: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

HELP = """\
Shows versions, devices, which kernel backend each operator would use and why, which optional packages are missing and
how to get them, and which data folders were found. Always exits with 0: nothing here is an error.

examples:
  ranvier doctor
  ranvier doctor --json > doctor.json      for a bug report
"""

Report = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier doctor``."""
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(args: argparse.Namespace) -> int:
    """Collect every section and print it; a section that fails says so and the others still print."""
    report = {name: _guarded(section) for name, section in SECTIONS.items()}
    if args.json:
        print(json.dumps(report, indent=2, default=str))
    else:
        _print(report)
    return 0


def versions() -> Report:
    """Ranvier, Python, the platform and the packages of the base install."""
    found: Report = {
        "ranvier": metadata.version("ranvier"),
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
    }
    for requirement in metadata.requires("ranvier") or ():
        if "extra ==" not in requirement:
            name = _distribution(requirement)
            found[name] = _version(name) or "MISSING: install ranvier again"
    return found


def devices() -> Report:
    """How torch was built, its threads, and the accelerators that it sees."""
    import torch

    found: Report = {
        "cores": os.cpu_count(),
        "torch threads": torch.get_num_threads(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        "torch build": f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU only",
        "default device": "cuda" if torch.cuda.is_available() else "cpu",
    }
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found[f"cuda:{index}"] = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    if not torch.cuda.is_available():
        found["cuda"] = (
            "no CUDA device is visible" if torch.version.cuda else "this build of torch cannot use a CUDA device"
        )
    return found


def kernels() -> Report:
    """Backend per operator with the reason, from the dispatcher of `snn`."""
    import snn

    return {f"{choice.operator} on {choice.device}": f"{choice.backend}: {choice.why}" for choice in snn.explain()}


def extras() -> Report:
    """For each extra: complete, or what is missing and the command that brings it."""
    wanted: dict[str, list[str]] = {}
    for requirement in metadata.requires("ranvier") or ():
        extra = re.search(r"extra\s*==\s*[\"']([^\"']+)[\"']", requirement)
        if extra and extra[1] != "all":
            wanted.setdefault(extra[1], []).append(_distribution(requirement))
    report: Report = {}
    for extra_name, names in wanted.items():
        missing = [name for name in names if _version(name) is None]
        report[extra_name] = (
            "complete" if not missing else f"missing {', '.join(missing)}: pip install 'ranvier[{extra_name}]'"
        )
    return report


def dictionary() -> Report:
    """Where the pronunciation dictionary comes from."""
    spec = importlib.util.find_spec("pocketsphinx")
    if spec is None or not spec.submodule_search_locations:
        return {"CMU dictionary": "MISSING: it comes with `pip install pocketsphinx`"}
    files = sorted(Path(spec.submodule_search_locations[0]).rglob("*.dict"))
    if not files:
        return {"CMU dictionary": "pocketsphinx is installed but holds no .dict file: reinstall it"}
    return {"CMU dictionary": str(files[0])}


def data() -> Report:
    """Data folders: what $RANVIER_DATA names, and every Brain-to-Text tree within it or under ./data."""
    named = os.environ.get("RANVIER_DATA")
    report: Report = {"RANVIER_DATA": named or "not set (optional: the folder that holds your data)"}
    for root in [Path(named)] if named else []:
        report[str(root)] = "found" if root.is_dir() else "MISSING"
    for root in ([Path(named)] if named else []) + [Path("data")]:
        for folder, form in trees(root):
            report[str(folder)] = form
    return report


def trees(root: Path, depth: int = 3) -> list[tuple[Path, str]]:
    """Brain-to-Text trees at most ``depth`` folders below ``root``, each with what it looks like from its names."""
    if not root.is_dir():
        return []
    found: list[tuple[Path, str]] = []
    for name, (pattern, up) in TREE_SIGNS.items():
        for level in range(depth):
            for match in root.glob("*/" * level + pattern):
                folder = match.parents[up - 1]
                if (folder, name) not in found:
                    found.append((folder, name))
    return found


TREE_SIGNS: dict[str, tuple[str, int]] = {
    # What to look for, and how many folders up the tree's root is.
    "Brain-to-Text '25 form (HDF5)": ("*/data_train.hdf5", 2),
    "Brain-to-Text '24 form (.mat)": ("train/*.mat", 2),
    "ptDecoder_ctc pickle": ("ptDecoder_ctc*", 1),
}

SECTIONS: dict[str, Callable[[], Any]] = {
    "versions": versions,
    "devices": devices,
    "kernels": kernels,
    "extras": extras,
    "dictionary": dictionary,
    "data": data,
}


def _guarded(section: Callable[[], Any]) -> Any:
    # A broken install is exactly when this command is needed, so it must outlive any part of it.
    try:
        return section()
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _distribution(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return match.group() if match else requirement


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _rows(section: Any) -> list[tuple[str, str]]:
    if isinstance(section, dict):
        return [(str(key), str(value)) for key, value in section.items()]
    return [("", str(section))]


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=False)
    for name, section in report.items():
        table = Table(title=name, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for key, value in _rows(section):
            bad = value.startswith("MISSING") or key == "failed"
            style = "red" if bad else "yellow" if value.startswith("missing ") else ""
            table.add_row(Text(key, style="bold"), Text(value, style=style))
        console.print(table)
