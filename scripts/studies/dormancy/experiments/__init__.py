"""The experiments of the study, one a file; each hands on an `EXPERIMENT`."""

from scripts.studies.dormancy.experiments import census, digits, fashion, maps, regulariser, thresholds
from scripts.studies.dormancy.plan import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "digits": digits.EXPERIMENT,
    "census": census.EXPERIMENT,
    "thresholds": thresholds.EXPERIMENT,
    "regulariser": regulariser.EXPERIMENT,
    "maps": maps.EXPERIMENT,
    "fashion": fashion.EXPERIMENT,
}
"""Every experiment, in the order of the page. A new one is a file and a line here."""
