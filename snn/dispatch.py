"""One place that decides which implementation of an operator runs, and can say why.

An operator is a name in `OPERATORS` and a folder in `snn/kernels/`. That folder holds one file for every backend and
lists them in `BACKENDS`. The backend with the highest priority that is available and supports the call runs.

To add a backend: write `snn/kernels/<operator>/<name>.py` with a `run` function of the same signature as
`reference.run`, describe it with a `Backend`, and append it to `BACKENDS` in the folder's `__init__.py`. The tests walk
the table and compare each backend with the reference; no other file changes.

A backend may be forced, from the strongest to the weakest way:

* the argument `backend="reference"` of the functional call;
* `with snn.use_backend("reference"): ...` or `with snn.use_backend(lif="numba"): ...` (this thread only);
* the environment variable `RANVIER_BACKEND`, as `reference` or `lif=reference,fixed_delay_linear=numba`.

A forced backend that cannot run the call raises `BackendError`: nothing else runs in its place. A function compiled by
`torch.compile` keeps the backends that were chosen when it was compiled.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import torch

OPERATORS: dict[str, str] = {
    "lif": "snn.kernels.lif",
    "dormant_lif": "snn.kernels.dormant",
    "fixed_delay_linear": "snn.kernels.delay",
    "masked_batch_norm": "snn.kernels.norm",
}
"""Operator -> package that lists its backends in `BACKENDS` and builds an example call with `example()`."""

ENVIRONMENT = "RANVIER_BACKEND"


Function = TypeVar("Function", bound=Callable[..., Any])


def same_when_compiled(function: Function) -> Function:
    """Let `torch.compile` call `function` once and keep what it returned.

    What `torch.compiler.assume_constant_result` does, without its import of the compiler, which takes a second.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


class BackendError(RuntimeError):
    """A backend was asked for by name and cannot run the call."""


@dataclass(frozen=True)
class Backend:
    """One implementation of an operator.

    Attributes
    ----------
    name : str
        What the user writes to force it.
    priority : int
        The highest one that can run is taken.
    summary : str
        Half a sentence for `explain`.
    available : callable () -> str or None
        None when the machine has what it needs, else the reason why not.
    supports : callable (arguments) -> str or None
        None when it can run the call, else the reason why not. It looks at dtypes, devices and options only,
        never at values.
    run : callable (**arguments)
        The implementation.
    """

    name: str
    priority: int
    summary: str
    available: Callable[[], str | None]
    supports: Callable[[Mapping[str, Any]], str | None]
    run: Callable[..., Any]

    def refusal(self, arguments: Mapping[str, Any]) -> str | None:
        """Why this backend cannot run the call; None when it can."""
        return self.available() or self.supports(arguments)


class Choice(NamedTuple):
    """One row of `explain`: which backend an operator uses on a device, and why."""

    operator: str
    backend: str
    why: str
    device: str = "cpu"


_NOTHING: Mapping[str, str] = MappingProxyType({})
_forced: ContextVar[Mapping[str, str]] = ContextVar("ranvier_backend", default=_NOTHING)

_by_name: dict[str, dict[str, Backend]] = {}


@cache
def backends(operator: str) -> tuple[Backend, ...]:
    """Backends of an operator, best first. Raises ValueError for an unknown operator."""
    if operator not in OPERATORS:
        raise ValueError(f"unknown operator {operator!r}: expected one of {', '.join(OPERATORS)}")
    listed = importlib.import_module(OPERATORS[operator]).BACKENDS
    ordered = tuple(sorted(listed, key=lambda backend: -backend.priority))
    _by_name[operator] = {backend.name: backend for backend in ordered}
    return ordered


def load() -> None:
    """Read the tables of all operators: the compiler sees only what was there before it began."""
    for operator in OPERATORS:
        backends(operator)


@contextmanager
def use_backend(name: str | None = None, **per_operator: str) -> Iterator[None]:
    """Force a backend inside a `with` block, for all operators or by operator name.

    Parameters
    ----------
    name : str, optional
        Backend for every operator.
    **per_operator : str
        Backend by operator, such as `lif="reference"`; wins over `name`.

    Raises
    ------
    ValueError
        Unknown operator, or a backend that the operator does not have.

    >>> import torch, snn
    >>> with use_backend("reference"):
    ...     spikes, _ = snn.functional.lif(torch.ones(3, 1, 1), beta=0.5)
    >>> spikes.flatten().tolist()
    [0.0, 1.0, 0.0]
    """
    wanted = dict(_forced.get())
    if name is not None:
        wanted.update(dict.fromkeys(OPERATORS, name))
    wanted.update(per_operator)
    for operator, backend in wanted.items():
        _known(operator, backend, "use_backend")
    token = _forced.set(wanted)
    try:
        yield
    finally:
        _forced.reset(token)


def choose(operator: str, arguments: Mapping[str, Any], backend: str | None = None) -> Backend:
    """Pick the backend that runs a call.

    Parameters
    ----------
    operator : str
        A name in `OPERATORS`.
    arguments : mapping
        Keyword arguments of the call, as every backend's `run` takes them.
    backend : str, optional
        Forces this one.

    Raises
    ------
    BackendError
        The forced backend cannot run the call; the message says why.
    ValueError
        Unknown operator or backend.
    """
    forced, origin = _wish(operator, backend)
    if forced is not None:
        _known(operator, forced, origin)
        chosen = _by_name[operator][forced]
        refusal = _unavailable(operator, forced) or chosen.supports(arguments)
        if refusal:
            raise BackendError(f"{operator}: the backend {forced!r} asked for by {origin} cannot run: {refusal}")
        return chosen
    for name in _available(operator):
        candidate = _by_name[operator][name]
        if candidate.supports(arguments) is None:
            return candidate
    raise BackendError(f"{operator}: no backend can run this call: {_refusals(operator, arguments)}")


def explain(*, dtype: torch.dtype = torch.float32, spike_grad: Any = None) -> list[Choice]:
    """Which backend each operator uses on each device that is present, and why.

    Parameters
    ----------
    dtype : torch.dtype
        Of the example call.
    spike_grad : callable, optional
        Surrogate of the example call; the default is the arctan.

    >>> [(row.operator, row.device) for row in explain()][:2]
    [('lif', 'cpu'), ('dormant_lif', 'cpu')]
    """
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    rows = []
    for device in devices:
        for operator, package in OPERATORS.items():
            arguments = importlib.import_module(package).example(torch.device(device), dtype, spike_grad)
            rows.append(_explained(operator, arguments, device))
    return rows


def _explained(operator: str, arguments: Mapping[str, Any], device: str) -> Choice:
    """The row of one operator on one device; a forced backend that cannot run is reported, not raised."""
    forced, origin = _wish(operator, None)
    try:
        chosen = choose(operator, arguments)
    except (BackendError, ValueError) as error:
        return Choice(operator, "none", str(error), device)
    if forced is not None:
        return Choice(operator, chosen.name, f"asked for by {origin}", device)
    passed_over = [
        f"{other.name}: {other.refusal(arguments)}" for other in backends(operator) if other.priority > chosen.priority
    ]
    return Choice(operator, chosen.name, "; ".join([chosen.summary, *passed_over]), device)


def _refusals(operator: str, arguments: Mapping[str, Any]) -> str:
    return "; ".join(f"{backend.name}: {backend.refusal(arguments)}" for backend in backends(operator))


# What follows does not depend on the call's tensors: a compiled function keeps what it found when it was compiled.


@same_when_compiled
def _available(operator: str) -> tuple[str, ...]:
    return tuple(backend.name for backend in backends(operator) if backend.available() is None)


@same_when_compiled
def _unavailable(operator: str, name: str) -> str | None:
    return _by_name[operator][name].available()


@same_when_compiled
def _wish(operator: str, argument: str | None) -> tuple[str | None, str]:
    """The forced backend and who forced it: argument, then `use_backend`, then the environment."""
    if argument is not None:
        return argument, "the argument `backend`"
    if operator in _forced.get():
        return _forced.get()[operator], "`use_backend`"
    return _from_environment(os.environ.get(ENVIRONMENT, "")).get(operator), ENVIRONMENT


@cache
def _from_environment(text: str) -> dict[str, str]:
    """Operator -> backend as the environment variable asks. Raises ValueError where it cannot be read."""
    wanted: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        operator, equals, name = entry.rpartition("=")
        if equals and operator not in OPERATORS:
            raise ValueError(f"{ENVIRONMENT}: unknown operator {operator!r}: expected one of {', '.join(OPERATORS)}")
        wanted.update({operator: name} if equals else dict.fromkeys(OPERATORS, name))
    return wanted


@same_when_compiled
def _known(operator: str, name: str, origin: str) -> bool:
    """True; raises ValueError for a backend that the operator does not have."""
    names = [backend.name for backend in backends(operator)]
    if name not in names:
        raise ValueError(f"{origin}: {operator} has no backend {name!r}: expected one of {', '.join(names)}")
    return True
