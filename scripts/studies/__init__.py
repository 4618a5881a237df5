"""Experiments that join the rooms, one file each; `scripts.studies.runs` trains and scores what they compare."""
