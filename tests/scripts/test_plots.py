"""Every plot draws, says where its data come from, and shows what it was given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro import DataError
from neuro.phonemes import SYMBOLS

pytest.importorskip("matplotlib", reason="plots need matplotlib, from ranvier[train]")

from scripts.plots import PLOTS, boundary_entropy, confusion, learning_curve, spike_raster, spike_trains
from scripts.plots.learning_curve import find_curves, read_curves
from scripts.plots.style import save

RNG = np.random.default_rng(0)
CURVES = {
    "val_per": (np.array([0, 100]), np.array([1.0, 0.25])),
    "train_loss": (np.array([0, 50, 100]), np.array([3.0, 2.0, 1.0])),
}
SPIKES = RNG.random((40, 300)) < 0.1
POSTERIORS = RNG.dirichlet(np.ones(41), size=10)
SPANS = [("HH", 0.1, 0.3), ("AY", 0.3, 0.6), ("SIL", 0.6, 0.8)]

FIGURES = {
    "learning_curve": lambda: learning_curve(
        {"snn": CURVES, "gru": CURVES}, source="simulated participant", chance=0.8
    ),
    "spike_raster": lambda: spike_raster(
        SPIKES,
        POSTERIORS,
        SPANS,
        symbols=SYMBOLS,
        seconds=0.8,
        source="simulated participant",
        trial="t15/val/trial_0001",
    ),
    "spike_trains": lambda: spike_trains(
        [(np.array([0.1, 0.2]), np.array([3, 69])), (np.array([]), np.array([]))],
        ["seven, ann", "eight, bob"],
        n_units=70,
        source="simulated participant",
    ),
    "confusion": lambda: confusion(
        RNG.integers(0, 9, (41, 41)), symbols=SYMBOLS, source="simulated participant", split="val split"
    ),
    "boundary_entropy": lambda: boundary_entropy(
        np.arange(-10, 11),
        {"with blank": RNG.random(21)},
        bin_seconds=0.02,
        source="simulated participant",
        split="val",
    ),
}


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_every_plot_draws_and_names_its_source(name: str, tmp_path: Path) -> None:
    figure = FIGURES[name]()
    assert "(simulated participant)" in figure.get_suptitle()
    labelled = [axes for axes in figure.axes if axes.get_xlabel() or axes.get_ylabel()]
    assert labelled, "axes need labels with units"
    path = save(figure, tmp_path / f"{name}.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size < 400_000


def test_error_rates_are_drawn_in_per_cent() -> None:
    axes = FIGURES["learning_curve"]().axes[0]
    assert axes.lines[0].get_ydata().tolist() == [100.0, 25.0]
    assert "%" in axes.get_ylabel()


def test_what_was_not_logged_is_said() -> None:
    figure = learning_curve({"run": {}}, source="recorded")
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["not logged", "not logged"]


def test_raster_shows_the_measured_rate() -> None:
    spikes = np.zeros((10, 4), bool)
    spikes[3, 2] = True
    figure = spike_raster(spikes, POSTERIORS, [], symbols=SYMBOLS, seconds=0.2, source="recorded", trial="k")
    assert "2.5 %" in figure.axes[0].get_title(loc="left")


def test_trains_lie_on_common_axes() -> None:
    first, second = FIGURES["spike_trains"]().axes
    assert first.get_title(loc="left") == "seven, ann: 2 spikes, 0.1 a unit and second"
    assert first.collections[0].get_offsets().tolist() == [[0.1, 3], [0.2, 69]]
    assert first.get_ylim() == second.get_ylim() == (-1, 70) and first.get_xlim() == second.get_xlim()


def test_a_model_without_spikes_has_no_raster() -> None:
    with_spikes, without = (
        spike_raster(s, POSTERIORS, SPANS, symbols=SYMBOLS, seconds=0.8, source="recorded", trial="k")
        for s in (SPIKES, None)
    )
    assert len(without.axes) == len(with_spikes.axes) - 1


def test_confusion_rows_are_shares_of_the_reference() -> None:
    counts = np.zeros((41, 41), int)
    said, heard = SYMBOLS.index("IY"), SYMBOLS.index("IH")
    counts[said, said], counts[said, heard], counts[said, 0] = 6, 3, 1
    image = confusion(counts, symbols=SYMBOLS, source="recorded", split="val").axes[0].images[0].get_array()
    # The articulatory order starts with IY, IH; the last column stands for deletions.
    assert image[0, :2].tolist() == [60.0, 30.0] and image[0, -1] == 10.0
    assert np.isnan(np.asarray(image.filled(np.nan))[5]).all(), "a phoneme that was never said has no shares"


def test_curves_skip_the_cells_that_a_row_leaves_empty(tmp_path: Path) -> None:
    log = tmp_path / "learning_curve.csv"
    log.write_text("update,epoch,train_loss,val_per\n5,0,3.5,\n10,0,,0.9\n20,1,2.5,\n")
    curves = read_curves(log)
    assert curves["train_loss"][0].tolist() == [5, 20] and curves["train_loss"][1].tolist() == [3.5, 2.5]
    assert curves["val_per"][1].tolist() == [0.9]


def test_a_log_without_updates_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "learning_curve.csv"
    log.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="update"):
        read_curves(log)


def test_the_log_is_found_from_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run" / "checkpoints" / "best.ckpt"
    checkpoint.parent.mkdir(parents=True)
    assert find_curves(checkpoint) is None
    (tmp_path / "run" / "learning_curve.csv").touch()
    assert find_curves(checkpoint) == (tmp_path / "run" / "learning_curve.csv").resolve()
