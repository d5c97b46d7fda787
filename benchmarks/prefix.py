"""Prefix scores of a whole episode against realigning every prefix with Biopython."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rivals import biopython_prefix_scores

from align_rudder.redistribution import Scorer

__all__ = ["measure"]


def measure(steps: int = 2000, columns: int = 500, n_events: int = 20) -> dict[str, Any]:
    """Return seconds of both ways and their ratio; both must give the same scores."""
    rng = np.random.default_rng(0)
    # As in a profile of aligned demonstrations: each column holds one to three events.
    pssm = np.full((n_events, columns), -np.inf)
    for j in range(columns):
        held = rng.choice(n_events, rng.integers(1, 4), replace=False)
        pssm[held, j] = np.round(rng.uniform(-0.5, 3.0, len(held)), 3)
    events = rng.integers(0, n_events, steps)
    scorer = Scorer([pssm])
    ours = scorer.prefix_scores(events)[0]
    times = []
    for _ in range(50):
        start = time.perf_counter()
        scorer.prefix_scores(events)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    theirs = biopython_prefix_scores(events, pssm)
    rival = time.perf_counter() - start
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    mine = float(np.median(times))
    return {
        "steps": steps,
        "columns": columns,
        "ours_s": mine,
        "biopython_s": rival,
        "ratio": rival / mine,
    }
