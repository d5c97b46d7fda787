"""The weights of the LSTM as arrays, and its compiled forward pass.

With input x_t, the network is RUDDER's simplified LSTM, whose cells only ever add:

    z_t = tanh(W_z x_t + b_z)                    the cell input sees the step alone
    i_t = σ(W_i x_t + U h_{t−1} + b_i)           the input gate also sees what happened before
    c_t = c_{t−1} + i_t z_t,   h_t = tanh(c_t)   no forget gate, no output gate
    g_t = w·h_t + w_0                            the predicted return, standardised

A one-hot x_t makes W x_t a lookup, so that W is stored as the rows of an embedding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from align_rudder._compile import njit
from align_rudder.files import Array, Floats

__all__ = ["WEIGHTS", "Weights", "advance", "predictions_numpy"]


def _weights(*shape: int | str) -> Array:
    """Return what an array of weights may be: of a size whose sums stay finite in float32."""
    return Floats(*shape, low=-1e9, high=1e9, dtype=np.float32)


WEIGHTS = {
    "embedding": _weights("rows", "2*hidden"),
    "numeric": _weights("numbers", "2*hidden"),
    "bias": _weights("2*hidden"),
    "recurrent": _weights("hidden", "hidden"),
    "head": _weights("hidden+1"),
}
"""The arrays of a file: `rows` of categories, `numbers`, `hidden` cells."""


class Weights(NamedTuple):
    """The weights, all float32; H cells. In JAX, a tree of its arrays.

    Attributes:
        embedding: Input weights of categories (rows, 2H): H for the cell input, H for the gate.
        numeric: Input weights of numbers (numbers, 2H).
        bias: Biases (2H,).
        recurrent: U (H, H), from cell to gate.
        head: w and then w_0 (H + 1,).
    """

    embedding: np.ndarray
    numeric: np.ndarray
    bias: np.ndarray
    recurrent: np.ndarray
    head: np.ndarray

    @property
    def hidden(self) -> int:
        """Number of cells H."""
        return len(self.recurrent)

    def inputs(self, tokens: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cell input z (n, H) and the gate's input part (n, H) of n steps."""
        x = _inputs(tokens, numbers, self.embedding, self.numeric, self.bias)
        return _tanh(x[:, : self.hidden]), np.ascontiguousarray(x[:, self.hidden :])

    def predict(self, tokens: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return g before the first step and after each (T + 1,)."""
        out = np.empty(len(tokens) + 1, np.float32)
        _predict(*self.inputs(tokens, numbers), self.recurrent, self.head, out)
        return out


@njit(cache=True, nogil=True)
def _inputs(tokens, numbers, embedding, numeric, bias):
    out = np.empty((len(tokens), len(bias)), np.float32)
    for t in range(len(tokens)):
        out[t] = bias
        for k in range(tokens.shape[1]):
            out[t] += embedding[tokens[t, k]]
        for k in range(numbers.shape[1]):
            out[t] += numbers[t, k] * numeric[k]
    return out


@njit(cache=True, nogil=True)
def _tanh(x):
    out = np.empty(x.shape, np.float32)
    for t in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[t, k] = math.tanh(x[t, k])
    return out


@njit(cache=True, nogil=True)
def advance(z, gate, recurrent, head, c, h, a):
    """Add a step to the cells c and outputs h in place; return the prediction g_t.

    `z` and `gate` are a step's row of `Weights.inputs`, `a` is room for H numbers.
    """
    one, two = np.float32(1.0), np.float32(2.0)
    n = len(c)
    for k in range(n):
        a[k] = gate[k]
    for j in range(n):
        for k in range(n):
            a[k] += h[j] * recurrent[j, k]
    g = head[n]
    for k in range(n):
        c[k] += z[k] / (one + math.exp(-a[k]))
        h[k] = one - two / (one + math.exp(two * c[k]))
        g += head[k] * h[k]
    return g


@njit(cache=True, nogil=True)
def _predict(z, gate, recurrent, head, out):
    n = len(recurrent)
    c, h, a = np.zeros(n, np.float32), np.zeros(n, np.float32), np.empty(n, np.float32)
    out[0] = head[n]
    for t in range(len(z)):
        out[t + 1] = advance(z[t], gate[t], recurrent, head, c, h, a)


@njit(cache=True, nogil=True)
def advance_many(z, gate, recurrent, head, c, h, g, mask):
    """Add a step to each of many episodes (of the mask), in place."""
    a = np.empty(len(recurrent), np.float32)
    for i in range(len(z)):
        if mask[i]:
            g[i] = advance(z[i], gate[i], recurrent, head, c[i], h[i], a)


def predictions_numpy(weights: Weights, tokens: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return g before the first step and after each (T + 1,), in plain NumPy and float64."""
    n = weights.hidden
    x = weights.embedding.astype(float)[tokens].sum(axis=1)
    x = x + numbers.astype(float) @ weights.numeric + weights.bias
    c, h = np.zeros(n), np.zeros(n)
    out = [float(weights.head[n])]
    for row in x:
        gate = 1.0 / (1.0 + np.exp(-(row[n:] + h @ weights.recurrent)))
        c = c + gate * np.tanh(row[:n])
        h = np.tanh(c)
        out.append(float(weights.head[:n] @ h + weights.head[n]))
    return np.array(out)
