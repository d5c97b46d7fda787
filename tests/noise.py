"""Demonstrations with keys hidden in noise, pure noise, and random walks."""

import numpy as np

KEYS = {
    "3 keys in 50 of 10": (3, 50, 10),
    "5 keys in 100 of 20": (5, 100, 20),
    "5 keys in 200 of 15": (5, 200, 15),
}


def keys_in_noise(rng, keys, length, kinds, n=10):
    """Return demonstrations that hold keys in a fixed order at random places of noise."""
    out = []
    for _ in range(n):
        noise = rng.integers(0, kinds, length).tolist()
        for place, key in zip(np.sort(rng.integers(0, length + 1, keys))[::-1], range(keys)[::-1]):
            noise.insert(int(place), f"key {key}")
        out.append(noise)
    return out


def pure_noise(rng, length, kinds, n=10):
    """Return sequences of independent events."""
    return [rng.integers(0, kinds, length).tolist() for _ in range(n)]


def ring_walk(rng, length, kinds, n=10):
    """Return random walks on a ring from one start."""
    steps = rng.choice([-1, 1], (n, length))
    steps[:, 0] = 0
    return (np.cumsum(steps, axis=1) % kinds).tolist()


def line_walk(rng, length, kinds, n=10):
    """Return random walks between two walls, from the middle; bumping into one is no event."""
    out = []
    for _ in range(n):
        walk = [kinds // 2]
        while len(walk) < length:
            step = min(max(walk[-1] + int(rng.choice([-1, 1])), 0), kinds - 1)
            walk += [step] * (step != walk[-1])
        out.append(walk)
    return out


def grid_walk(rng, length, side, n=10):
    """Return random walks on a square grid, from a corner; bumping into a wall is no event."""
    out = []
    moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    for _ in range(n):
        at, walk = np.zeros(2, int), [0]
        while len(walk) < length:
            at = np.clip(at + moves[rng.integers(4)], 0, side - 1)
            here = int(at[0] * side + at[1])
            walk += [here] * (here != walk[-1])
        out.append(walk)
    return out


NOTHING = {
    "noise, 50 of 10": (pure_noise, 50, 10),
    "noise, 100 of 20": (pure_noise, 100, 20),
    "noise, 15 of 10": (pure_noise, 15, 10),
    "walk on a ring of 10, 50": (ring_walk, 50, 10),
    "walk on a ring of 20, 30": (ring_walk, 30, 20),
    "walk on a line of 8, 12": (line_walk, 12, 8),
    "walk on a line of 10, 40": (line_walk, 40, 10),
    "walk on a grid of 5 by 5, 50": (grid_walk, 50, 5),
    "walk on a grid of 8 by 8, 20": (grid_walk, 20, 8),
}


def share_on_keys(model, sequences):
    """Return the share of the demonstrations' reward that is paid at keys."""
    on_keys = total = 0.0
    for sequence in sequences:
        rewards = model.redistribute_events(sequence, 1.0).rewards
        total += rewards.sum()
        on_keys += sum(r for r, e in zip(rewards, sequence) if isinstance(e, str))
    return on_keys / total if total else 0.0
