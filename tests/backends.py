"""Backends of an operator as values of a parametrised test."""

import pytest

from snn import dispatch


def every_backend(operator: str) -> list:
    """One value for each backend; those that compile first are marked slow, since each dtype compiles anew."""
    names = [backend.name for backend in dispatch.backends(operator)]
    return [pytest.param(name, marks=[] if name == "reference" else pytest.mark.slow) for name in names]
