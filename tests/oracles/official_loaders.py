"""How the official loaders read their own files, written out plainly; our readers and writers are compared with it.

'25: Neuroprosthetics-Lab/nejm-brain-to-text, model_training/dataset.py and evaluate_model_helpers.py. The session is
the part of the path that starts with ``t15.20``; trials are ``trial_0000`` upwards without a gap; the sentence ends at
the first zero of ``transcription``; the corpus is looked up by date and block.

'24: cffan/neural_seq_decoder, notebooks/formatCompetitionData.ipynb, and fwillett/speechBCI. Whole file by loadmat;
texts stripped; columns 0..127 of tx1 and of spikePow; z-score over all trials of a block, 1e-8 added to the deviation.
"""

from __future__ import annotations

import csv
from pathlib import Path

import h5py
import numpy as np
from scipy.io import loadmat


def session_in_path(path: Path, start: str) -> str:
    matches = [part for part in str(path).split("/") if part.startswith(start)]
    assert len(matches) == 1, (path, matches)
    return matches[0].removesuffix(".mat")


def read_b2t25_file(path: Path) -> list[dict]:
    """Every trial of one HDF5 file, in order of its number."""
    trials = []
    with h5py.File(path, "r") as file:
        for number in range(len(file)):
            group = file[f"trial_{number:04d}"]  # a gap in the numbers is a KeyError here, as it is there
            labelled = "seq_class_ids" in group
            trial = {
                "features": group["input_features"][:],
                "n_time_steps": group.attrs["n_time_steps"],
                "session": group.attrs["session"][:],
                "block_num": group.attrs["block_num"],
                "trial_num": group.attrs["trial_num"],
                "seq_class_ids": group["seq_class_ids"][:] if labelled else None,
                "seq_len": group.attrs.get("seq_len"),
                "sentence_label": group.attrs["sentence_label"][:] if "sentence_label" in group.attrs else None,
                "transcription": group["transcription"][:] if "transcription" in group else None,
                "path_session": session_in_path(path, "t15.20"),
            }
            if labelled:
                end = int(np.argwhere(trial["transcription"] == 0)[0, 0])
                trial["transcription_text"] = "".join(chr(int(code)) for code in trial["transcription"][:end])
            trials.append(trial)
    return trials


def corpus_of(table: Path, session: str, block: int) -> str:
    """The corpus that the block table gives; an IndexError when the block is not in it, as there."""
    date = "-".join(session.split(".")[1:])
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Date"] == date and int(row["Block number"]) == block]
    return rows[0]["Corpus"]


def read_b2t24_file(path: Path) -> list[dict]:
    """Every trial of one .mat file, features z-scored over their block."""
    contents = loadmat(path)
    n_trials = contents["sentenceText"].shape[0]
    blocks = np.squeeze(contents["blockIdx"], axis=1)
    inputs = [
        np.concatenate([contents["tx1"][0, i][:, 0:128], contents["spikePow"][0, i][:, 0:128]], axis=1)
        for i in range(n_trials)
    ]
    for block in np.unique(blocks):
        members = np.flatnonzero(blocks == block)
        together = np.concatenate([inputs[i] for i in members], axis=0).astype(np.float64)
        mean, deviation = np.mean(together, axis=0, keepdims=True), np.std(together, axis=0, keepdims=True)
        for i in members:
            inputs[i] = (inputs[i] - mean) / (deviation + 1e-8)
    return [
        {
            "features": inputs[i],
            "sentence": contents["sentenceText"][i].strip(),
            "block": int(blocks[i]),
            "session": session_in_path(path, "t12.20"),
        }
        for i in range(n_trials)
    ]


def block_zscore_at_once(trials: list[np.ndarray], blocks: list[int]) -> list[np.ndarray]:
    """Z-score over a block by putting all of it into one array."""
    scored: list[np.ndarray] = [np.empty(0)] * len(trials)
    for block in set(blocks):
        members = [i for i, b in enumerate(blocks) if b == block]
        together = np.concatenate([trials[i] for i in members]).astype(np.float64)
        for i in members:
            scored[i] = (trials[i] - together.mean(axis=0)) / (together.std(axis=0) + 1e-8)
    return scored
