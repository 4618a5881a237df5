"""n-gram models of the user's own: ARPA files and KenLM's binary ones."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decoders.text.flashlight import flashlight_decoder
from neuro import DataError

_COUNT = re.compile(rb"ngram (\d+)\s*=\s*(\d+)")
LN_10 = math.log(10)


class KenLMFile:
    """A model that KenLM reads (Heafield 2011), in an ARPA file or KenLM's own form.

    Attributes
    ----------
    name : str
        The file's name.
    nats : float
        KenLM counts in decimal logarithms.

    Raises
    ------
    DataError
        If the file is missing or damaged, or the package kenlm is.
    """

    nats = LN_10

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = f"n-gram file {self.path.name}"
        if not self.path.is_file():
            raise DataError("no such language model", file=self.path, expected="`default`, or an ARPA or KenLM file")
        check_arpa(self.path)
        try:
            import kenlm
        except ImportError as error:
            raise DataError(
                f"n-gram files need the package kenlm, which cannot be loaded ({error}): pip install 'ranvier[text]'"
            ) from None
        try:
            self._model = kenlm.Model(str(self.path))
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"KenLM cannot read this file: {str(error).splitlines()[-1][:160]}", file=self.path
            ) from None

    def prior(self, word: str) -> float | None:
        """Natural log-probability of a word without history; None for an unknown one."""
        return self._model.score(word, bos=False, eos=False) * LN_10 if word in self._model else None

    def sentence(self, words: Sequence[str]) -> float:
        """Natural log-probability of a sentence with its end."""
        return self._model.score(" ".join(words)) * LN_10

    def for_search(self, words: Sequence[str]) -> Any:
        """This model as flashlight asks for it, words by number."""
        flashlight_decoder()
        from flashlight.lib.text.decoder.kenlm import KenLM
        from flashlight.lib.text.dictionary import Dictionary

        return KenLM(str(self.path), Dictionary(list(words)))


def check_arpa(path: Path) -> None:
    r"""Check that an ARPA file has a section for every order it announces, and its end; other files pass.

    Raises
    ------
    DataError
        Names the section that is missing.
    """
    with path.open("rb") as file:
        first = file.readline(200).strip()
        if b"\x00" in first or first.startswith(b"mmap lm"):
            return
        orders: list[int] = []
        marks = {first} if first.startswith(b"\\") else set()
        for line in file:
            if line.startswith(b"\\"):
                marks.add(line.strip())
            elif line.startswith(b"ngram ") and (count := _COUNT.match(line)):
                orders.append(int(count[1]))
    wanted = [b"\\data\\", *(b"\\%d-grams:" % n for n in orders or [1]), b"\\end\\"]
    missing = [mark.decode() for mark in wanted if mark not in marks]
    if missing:
        raise DataError("ARPA file with missing sections", file=path, found=f"no {', no '.join(missing)}")
