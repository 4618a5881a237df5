"""The search against every path, against flashlight's own call, and with the default language model."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("flashlight", reason="the search needs ranvier[text]")

from decoders.text import BeamSearch, Vocabulary, Weights, load_language_model, read_dictionary
from decoders.text.beam import UNPRUNED
from decoders.text.trigram import END, START, PocketsphinxTrigram
from neuro import DataError
from neuro.lexicon import Lexicon
from neuro.phonemes import BLANK, SIL, SYMBOLS, PhonemeOrder, encode, reorder

spec = importlib.util.spec_from_file_location("word_search", Path(__file__).parents[2] / "oracles" / "word_search.py")
assert spec is not None and spec.loader is not None
oracle = importlib.util.module_from_spec(spec)
spec.loader.exec_module(oracle)


class ToyModel(PocketsphinxTrigram):
    """A trigram whose numbers come from a seed."""

    name = "toy"

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._scores: dict = {}

    def conditional(self, word, history):
        return self._scores.setdefault((word, history), float(-self._rng.exponential(2.0)))

    def prior(self, word):
        return -1.0


# One word inside another, homophones, one phoneme twice in a row, and words that begin as others end.
SPELLINGS = {("B",): ("b",), ("B", "IY"): ("be", "bee"), ("IY", "IY"): ("eee",), ("IY", "B"): ("eeb",)}


def toy_search(**options) -> BeamSearch:
    vocabulary = Vocabulary.build([(w, s) for s, words in SPELLINGS.items() for w in words], lambda word: -1.0)
    return BeamSearch(vocabulary, ToyModel(), Weights(0.7, -0.3), nbest=5, **options)


def toy_logits(seed: int, frames: int = 7) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    logits = np.full((frames, 1, len(SYMBOLS)), -30.0, np.float32)
    chosen = [BLANK, SIL, *encode(["B", "IY"])]
    logits[:, 0, chosen] = np.log(rng.dirichlet(np.full(4, 0.7), frames) + 1e-6)
    return torch.from_numpy(logits)


@pytest.mark.parametrize("seed", range(12))
def test_finds_the_best_of_all_paths(seed: int) -> None:
    search = toy_search(beam=20_000, threshold=UNPRUNED)
    logits = toy_logits(seed)
    emissions = logits.log_softmax(-1)[:, 0].numpy()

    def language(words):
        return 0.7 * search.language_model.sentence(words) - 0.3 * len(words)

    spelled = {tuple(encode(s)): words for s, words in SPELLINGS.items()}
    everything = oracle.best_scores(emissions, spelled, language)
    found = search.decode(logits, torch.tensor([7]))[0]
    assert found[0].score(search.weights) == pytest.approx(max(everything.values()), abs=1e-3)
    # Sentences that end in the same two words share a state, and only the best of them survives; those that do are
    # scored as they should be.
    for hypothesis in found:
        assert hypothesis.score(search.weights) == pytest.approx(everything[hypothesis.words], abs=1e-3)


def test_equals_flashlights_own_call() -> None:
    import flashlight.lib.text.decoder as fl

    search, logits = toy_search(beam=20), toy_logits(3, 15)
    ours = search.decode(logits, torch.tensor([15]))[0]
    trie = fl.Trie(41, SIL)
    for spelling, words in search.vocabulary.spellings.items():
        for word in words:
            trie.insert([*encode(spelling), SIL], search.vocabulary.words.index(word), -1.0)
    trie.smear(fl.SmearingMode.MAX)
    options = fl.LexiconDecoderOptions(20, 41, 50.0, 0.7, -0.3, -math.inf, 0.0, False, fl.CriterionType.CTC)
    lm = search.language_model.for_search(search.vocabulary.words)
    emissions = np.ascontiguousarray(logits.log_softmax(-1)[:, 0].numpy())
    theirs = fl.LexiconDecoder(options, trie, lm, SIL, BLANK, -1, [], False).decode(emissions.ctypes.data, 15, 41)[0]
    assert ours[0].words == tuple(search.vocabulary.words[w] for w in theirs.words if w >= 0)
    assert ours[0].score(search.weights) == pytest.approx(theirs.score, abs=1e-3)
    assert ours[0].acoustic == theirs.emittingModelScore


@pytest.mark.parametrize("order", PhonemeOrder)
def test_every_official_order_reads_the_same(order: PhonemeOrder) -> None:
    search, logits = toy_search(), toy_logits(1)
    moved = reorder(logits, PhonemeOrder.TORCH, order)
    lengths = torch.tensor([7])
    assert search.decode(moved, lengths, order) == search.decode(logits, lengths)


def test_padding_and_company_change_nothing() -> None:
    search = toy_search()
    short, long = toy_logits(1, 7), toy_logits(2, 12)
    padded = torch.full((12, 2, 41), 9.0)
    padded[:7, :1], padded[:, 1:] = short, long
    together = search.decode(padded, torch.tensor([7, 12]))
    assert together == search.decode(short, torch.tensor([7])) + search.decode(long, torch.tensor([12]))


def test_no_frames_are_no_words_and_nan_is_refused() -> None:
    search = toy_search()
    assert search.decode(torch.zeros(3, 1, 41), torch.tensor([0]))[0][0].words == ()
    with pytest.raises(DataError, match="NaN"):
        search.decode(torch.full((3, 1, 41), math.nan), torch.tensor([3]))
    with pytest.raises(DataError, match="beyond the logits: found 4"):
        search.decode(torch.zeros(3, 1, 41), torch.tensor([4]))
    with pytest.raises(DataError, match=r"frames, batch, 41"):
        search.decode(torch.zeros(3, 41), torch.tensor([3]))
    with pytest.raises(DataError, match="wrong number of outputs"):
        search.decode(torch.zeros(3, 1, 40), torch.tensor([3]))
    with pytest.raises(DataError, match="beam"):
        toy_search(beam=0)


@pytest.fixture(scope="module")
def default() -> BeamSearch:
    model = load_language_model("default")
    return BeamSearch(Vocabulary.build(read_dictionary(), model.prior), model)


@pytest.mark.parametrize(
    "sentence", ["i can see it", "they looked at the sea", "he lost his key", "how do you feel about going there"]
)
def test_common_homophones_come_out(default: BeamSearch, sentence: str) -> None:
    labels = Lexicon().phonemes(sentence)
    logits = torch.zeros(4 * len(labels), 1, 41)
    for position, label in enumerate(labels):
        # Each phoneme lasts for two frames: a word's last one must be able to.
        logits[4 * position : 4 * position + 2, 0, label] = 12.0
        logits[4 * position + 2 : 4 * position + 4, 0, BLANK] = 12.0
    found = default.decode(logits, torch.tensor([len(logits)]))[0]
    assert found[0].text == sentence


def test_what_the_trie_has_no_room_for_is_named(default: BeamSearch) -> None:
    vocabulary = default.vocabulary
    kept = vocabulary.spellings["S", "IY"]
    assert {"see", "sea"} <= set(kept) and len(kept) <= 6
    assert vocabulary.spellings["K", "IY"][0] == "key"
    assert 0 < len(vocabulary.dropped) < 200 and "without one of their pronunciations" in str(vocabulary)
    assert len(vocabulary.words) > 70_000


def test_the_trigram_is_a_distribution() -> None:
    model = PocketsphinxTrigram()
    words = [word for word in {w for w, _ in read_dictionary()} if model.prior(word) is not None]
    total = sum(math.exp(model.conditional(word, ("do", "you"))) for word in (*words, END))
    assert 0.9 < total < 1.01
    how = ("how", "do", "you", "feel")
    histories = [(START,), (START, "how"), how[:2], how[1:3], how[2:]]
    steps = [model.conditional(word, history) for word, history in zip((*how, END), histories, strict=True)]
    assert model.sentence(how) == pytest.approx(sum(steps))
    assert model.sentence(how) > model.sentence(how[::-1]) + 5
    assert model.prior("xyzzyq") is None
