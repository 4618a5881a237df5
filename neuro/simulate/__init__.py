"""A simulated participant: sentences to neural recordings in the shape of the Brain-to-Text releases."""

from neuro.simulate.participant import Participant
from neuro.simulate.prompts import CORPORA, draw_sentence
from neuro.simulate.settings import FORMS, PACES, SETTINGS, Form, Pace, Setting

__all__ = ["CORPORA", "FORMS", "PACES", "SETTINGS", "Form", "Pace", "Participant", "Setting", "draw_sentence"]
