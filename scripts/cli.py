"""``ranvier COMMAND``: finds the command, imports it, and turns a user's mistake into one sentence.

Nothing but the standard library is imported before a command is chosen, so ``ranvier --help`` is instant.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from types import ModuleType
from typing import NamedTuple


class Terminated(KeyboardInterrupt):
    """SIGTERM: a command ends as at Ctrl-C, so that nothing half written and no child process is left behind."""


class Command(NamedTuple):
    """Where a command lives and what it does, in half a line.

    The module has ``HELP`` (a paragraph), ``add_arguments(parser)`` and ``run(args) -> exit code``. One that brings its
    own parser has ``run_argv(argv) -> exit code`` instead.
    """

    module: str
    summary: str


COMMANDS: dict[str, Command] = {
    "demo": Command("scripts.demo", "the main job on a small simulated participant, end to end, in minutes"),
    "simulate": Command("scripts.simulate", "write a simulated participant in the '25 or '24 file format"),
    "convert": Command("scripts.convert", "recorded speech to spike trains; any Brain-to-Text form to the '25 form"),
    "train": Command("scripts.train", "fit a recipe from scripts/configs"),
    "evaluate": Command("scripts.evaluate", "phoneme error rate per session and overall, with intervals and plots"),
    "bench": Command("scripts.bench", "side-by-side speed tables, verified before timed"),
    "study": Command("scripts.study", "rerun a published claim and write its page in docs/results"),
    "doctor": Command("scripts.doctor", "versions, devices, kernels, data found; what is missing and how to get it"),
}
"""Every command, in the order of the help text. A new one is a file and a line here."""

EXAMPLES = """\
examples:
  ranvier demo                                     see everything work, with no data at all
  ranvier doctor                                   what this machine has, and what is missing
  ranvier simulate data/sim --sessions 4 --seed 1  a participant to practise on
  ranvier train fit --config residual_snn_500k --data.path data/sim
  ranvier evaluate runs/residual_snn_500k --data data/sim

`ranvier COMMAND --help` explains a command. `--debug` shows where an error came from.
"""

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
TERMINATED = 143  # 128 + SIGTERM
PIPE_CLOSED = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Parameters
    ----------
    argv
        Arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 done, 2 the request or the data are at fault, 130 interrupted, 143 terminated.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    name = arguments[0] if arguments else "--help"
    try:
        with _termination_interrupts():
            code = _dispatch(name, arguments)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) has gone. Without this, the interpreter complains once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt as interrupt:
        if debug:
            traceback.print_exc()
        terminated = isinstance(interrupt, Terminated)
        sys.stderr.write(f"\nranvier {name}: {'terminated' if terminated else 'interrupted'}\n")
        return TERMINATED if terminated else INTERRUPTED
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        if debug:
            traceback.print_exc()
        return _complain(name, sentence)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """While the block runs, SIGTERM raises `Terminated`; where somebody else handles it already, it does not."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _dispatch(name: str, arguments: list[str]) -> int:
    if name in ("-h", "--help", "help"):
        if len(arguments) < 2:
            sys.stdout.write(overview())
            return 0
        arguments = [arguments[1], "--help"]
        name = arguments[0]
    if name == "--version":
        sys.stdout.write(f"ranvier {metadata.version('ranvier')}\n")
        return 0
    if name not in COMMANDS:
        return _complain("", _unknown(name))
    return call(name, arguments[1:])


def overview() -> str:
    """The text of ``ranvier --help``."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.summary}" for name, command in COMMANDS.items()]
    return (
        "usage: ranvier COMMAND ...\n\n"
        "Spiking decoders for speech brain-computer interfaces: from the recording to phonemes.\n\n"
        "commands:\n" + "\n".join(lines) + "\n\n" + EXAMPLES
    )


def explain(error: BaseException) -> str | None:
    """One sentence for an error that is the user's to fix; None for one that is ours."""
    if isinstance(error, ModuleNotFoundError):
        return _missing_package(error)
    if is_disk_full(error):
        name = getattr(error, "filename", None)
        where = f" while writing {name}" if name else ""
        return f"no space left on the device{where}; what was finished before is intact"
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or error}"
    from neuro.errors import DataError

    if isinstance(error, DataError) or _raised_by(error, "snn"):
        return _from_worker(str(error))
    return None


def call(name: str, arguments: list[str]) -> int:
    """Run one command with its own arguments; errors come through as they are raised."""
    module: ModuleType = importlib.import_module(COMMANDS[name].module)
    if hasattr(module, "run_argv"):
        return module.run_argv(arguments)
    parser = argparse.ArgumentParser(
        prog=f"ranvier {name}", description=module.HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.add_arguments(parser)
    return module.run(parser.parse_args(arguments))


def _complain(name: str, sentence: str) -> int:
    sys.stderr.write(f"ranvier{' ' + name if name else ''}: {sentence}\n")
    return USAGE_ERROR


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"unknown option {name}; `ranvier --help` lists the commands"
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean `ranvier {near[0]}`?" if near else "`ranvier --help` lists the commands"
    return f"no command named {name!r}; {hint}"


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, or one that it was raised from, says that the disk is full."""
    cause: BaseException | None = error
    while cause is not None:
        # HDF5 reports a full disk in the text of an OSError or a RuntimeError without an errno of its own.
        if getattr(cause, "errno", None) == errno.ENOSPC or "No space left on device" in str(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def first_line(error: BaseException) -> str:
    """Type and first line of an error's text, at most 200 characters."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


def _from_worker(message: str) -> str:
    """The sentence alone, where DataLoader wrapped an error of its worker process in that process's stack trace."""
    if "Original Traceback" not in message:
        return message
    return message.strip().splitlines()[-1].partition(": ")[2]


def _raised_by(error: BaseException, room: str) -> bool:
    """Whether an error was raised on purpose in a room that has no class of its own for a user's mistakes."""
    if type(error).__module__.split(".")[0] == room:
        return True
    if not isinstance(error, (ValueError, TypeError)) or error.__traceback__ is None:
        return False
    innermost = list(traceback.walk_tb(error.__traceback__))[-1][0]
    return str(innermost.f_globals.get("__name__", "")).split(".")[0] == room


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """Which extra brings a missing package, from the distribution's own metadata."""
    wanted = re.sub(r"[-_.]+", "-", (error.name or "").split(".")[0]).lower()
    extra = extra_of(wanted)
    if extra is None:
        return None
    return f"this needs the package {wanted}, which is not installed: pip install 'ranvier[{extra}]'"


def extra_of(distribution: str) -> str | None:
    """The first extra of ranvier that asks for a distribution, by its normalised name; None if none does."""
    for requirement in metadata.requires("ranvier") or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"extra\s*==\s*[\"']([^\"']+)[\"']", requirement)
        if name and extra and re.sub(r"[-_.]+", "-", name.group()).lower() == distribution and extra[1] != "all":
            return extra[1]
    return None


if __name__ == "__main__":
    sys.exit(main())
