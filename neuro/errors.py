"""The one exception that means "the user's data or request is at fault"."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """A fault in the user's data or request, told in one sentence.

    The command line prints the message alone, without a stack trace, and exits with code 2.

    Parameters
    ----------
    problem
        What is wrong, in words.
    file, trial, field
        Where: the file, the trial inside it, the dataset, attribute or argument.
    found, expected
        The offending value and what should stand there.

    Examples
    --------
    >>> raise DataError("label outside the phoneme set", trial="trial_0003", found=41, expected="0..40")
    Traceback (most recent call last):
    ...
    neuro.errors.DataError: label outside the phoneme set (trial trial_0003): found 41, expected 0..40
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        trial: str | None = None,
        field: str | None = None,
        found: object = None,
        expected: object = None,
    ) -> None:
        self.problem, self.file, self.trial, self.field = problem, file, trial, field
        self.found, self.expected = found, expected
        super().__init__(problem)

    def __str__(self) -> str:
        where = [
            f"{name} {value}" if name else str(value)
            for name, value in (("", self.file), ("trial", self.trial), ("field", self.field))
            if value is not None
        ]
        message = self.problem + (f" ({', '.join(where)})" if where else "")
        what = [
            f"{name} {value}"
            for name, value in (("found", self.found), ("expected", self.expected))
            if value is not None
        ]
        return message + (f": {', '.join(what)}" if what else "")

    def __reduce__(self):  # survives the trip from a DataLoader worker to the main process
        return _rebuild, (type(self), self.__dict__.copy())


def _rebuild(cls: type[DataError], attributes: dict) -> DataError:
    error = cls.__new__(cls)
    error.__dict__.update(attributes)
    error.args = (attributes["problem"],)
    return error
