"""The likeliest CTC path that spells a label (forced alignment).

A Viterbi search over the CTC graph of Graves et al. (2006): labels with blanks between them, where a blank may be left
out between two different labels. torchaudio has the same operator, but its wheel loads only beside a CUDA build of
torch; this one runs wherever numba does.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def forced_path(log_probs: np.ndarray, label: np.ndarray, blank: int) -> np.ndarray:
    """Symbol of every frame on the likeliest path that spells a label.

    Parameters
    ----------
    log_probs : float (T, symbols)
    label : int64 (L,)
        Without blanks; ``L`` plus its immediate repeats must not exceed ``T``.
    blank : int

    Returns
    -------
    int64 (T,)
        Empty when the label is too long for the frames.
    """
    T, S = log_probs.shape[0], 2 * len(label) + 1
    symbols = np.full(S, blank, np.int64)
    symbols[1::2] = label
    score = np.full(S, -np.inf)
    came = np.zeros((T, S), np.int8)  # how many states back the best path came from: 0, 1 or 2
    for s in range(min(S, 2)):
        score[s] = log_probs[0, symbols[s]]
    for t in range(1, T):
        # From the last state down, so that the states before are still those of the frame before.
        for s in range(S - 1, -1, -1):
            best, step = score[s], 0
            if s >= 1 and score[s - 1] > best:
                best, step = score[s - 1], 1
            skips = s >= 2 and symbols[s] != blank and symbols[s] != symbols[s - 2]
            if skips and score[s - 2] > best:
                best, step = score[s - 2], 2
            score[s] = best + log_probs[t, symbols[s]]
            came[t, s] = step
    state = S - 1
    if S > 1 and score[S - 2] > score[S - 1]:
        state = S - 2
    if score[state] == -np.inf:
        return np.zeros(0, np.int64)
    path = np.empty(T, np.int64)
    for t in range(T - 1, -1, -1):
        path[t] = symbols[state]
        state -= came[t, state]
    return path
