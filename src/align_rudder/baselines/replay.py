"""Prioritised replay: a sum tree, and the memory of transitions that it draws from."""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit

__all__ = ["WIDTH", "find", "new_tree", "next_slot", "put", "store"]

WIDTH = 8  # of 4, 8, 16 and 32, the fastest for 30,000 priorities
_BELOW_ONE = 1.0 - 2.0**-53


def new_tree(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sum tree of `size` priorities, all of them 0.

    Returns:
        Sums: all levels, one after the other: the priorities, then the sums of `WIDTH` neighbours
        each, a node, and so on up to a single number, the total. Sums before: for each entry the
        sum of the entries before it in its node. Offsets: where each level begins.

    Example:
        >>> tree = new_tree(100)
        >>> put(tree, 7, 1.0)
        >>> put(tree, 42, 3.0)
        >>> float(tree[0][-1])
        4.0
        >>> find(tree, 0.5), find(tree, 1.5)
        (7, 42)
    """
    if size < 1:
        raise ValueError(f"size={size}; a tree needs room for at least 1 priority")
    sizes = [-(-size // WIDTH) * WIDTH]
    while sizes[-1] > WIDTH:
        sizes.append(-(-sizes[-1] // WIDTH**2) * WIDTH)
    sizes.append(1)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return np.zeros(sum(sizes)), np.zeros(sum(sizes)), offsets


@njit(cache=True, nogil=True)
def put(tree, i, priority):
    """Set priority i, and the sums above it from their children, so that no error builds up."""
    sums, before, offsets = tree
    sums[i] = priority
    for level in range(1, len(offsets)):
        i //= WIDTH
        first = offsets[level - 1] + i * WIDTH
        added = 0.0
        for child in range(first, first + WIDTH):
            before[child] = added
            added += sums[child]
        sums[offsets[level] + i] = added


@njit(cache=True, nogil=True)
def find(tree, u):
    """Return the first i with p_0 + … + p_i > u; never one of priority 0, unless all are.

    Where u is not below the total, be it by rounding, it is the last of positive priority.
    """
    sums, before, offsets = tree
    node = 0
    for level in range(len(offsets) - 1, 0, -1):
        u = min(u, sums[offsets[level] + node] * _BELOW_ONE)  # rounding must not lead beyond it
        first = offsets[level - 1] + node * WIDTH
        part = before[first : first + WIDTH]
        reached = 0
        for child in range(WIDTH):  # to count them all is faster than to stop
            reached += part[child] <= u
        u -= part[reached - 1]
        node = node * WIDTH + reached - 1
    return node


@njit(cache=True, nogil=True)
def next_slot(cursor, kept, capacity):
    """Return where the next transition goes: after the first `kept` ones, in turn.

    `cursor` is an array of one number, how many were added so far.
    """
    slot = kept + cursor[0] % capacity
    cursor[0] += 1
    return slot


@njit(cache=True, nogil=True)
def store(links, gains, slot, states, actions, rewards, t, length, n_step, gamma=1.0):
    """Store step t of an episode of which the first `length` steps are known.

    Row `slot` of `links` (slots, 4) becomes state, action, next state and the state n steps on;
    that of `gains` (slots, 2) the next reward and the discounted sum of the next n. An episode that
    has ended has −1 for its last state, `states[length]`.
    """
    after = min(t + n_step, length)
    links[slot, 0], links[slot, 1] = states[t], actions[t]
    links[slot, 2], links[slot, 3] = states[t + 1], states[after]
    total = 0.0
    for k in range(after - 1, t - 1, -1):
        total = rewards[k] + gamma * total
    gains[slot, 0], gains[slot, 1] = rewards[t], total
