"""The plots, one a file; each function takes arrays and hands back a matplotlib figure."""

from collections.abc import Callable

from scripts.plots.boundary_entropy import boundary_entropy
from scripts.plots.confusion import confusion
from scripts.plots.learning_curve import learning_curve
from scripts.plots.spike_raster import spike_raster
from scripts.plots.spike_trains import spike_trains

PLOTS: dict[str, Callable] = {
    "learning_curve": learning_curve,
    "spike_raster": spike_raster,
    "spike_trains": spike_trains,
    "confusion": confusion,
    "boundary_entropy": boundary_entropy,
}
"""Every plot. A new one is a file and a line here."""

__all__ = ["PLOTS", "boundary_entropy", "confusion", "learning_curve", "spike_raster", "spike_trains"]
