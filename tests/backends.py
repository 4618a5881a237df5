"""Backends of an operator as values of a parametrised test."""

import importlib

import pytest
import torch

from snn import dispatch


def every_backend(operator: str) -> list:
    """One value for each backend that runs here; those that compile first are slow, since each dtype compiles anew."""
    example = importlib.import_module(dispatch.OPERATORS[operator]).example(torch.device("cpu"), torch.float32)
    values = []
    for backend in dispatch.backends(operator):
        marks = [] if backend.name == "reference" else [pytest.mark.slow]
        if refusal := backend.refusal(example):
            marks.append(pytest.mark.skip(reason=f"{backend.name}: {refusal}"))
        values.append(pytest.param(backend.name, marks=marks))
    return values
