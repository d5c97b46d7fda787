"""One or two letters for each event, which remind of its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

__all__ = ["initials"]


def initials(names: Sequence[str], often: Sequence[int]) -> list[str]:
    """Return a letter or two for each name, each once; what comes most often chooses first.

    The first letter of a name, else those of its first two words, else it and a later one. Where
    all of these are taken, a letter and a number.

    Args:
        names: The names.
        often: How often each comes.

    Example:
        >>> initials(["verify_identity", "lookup_order", "validate", "verify order"], [9, 8, 7, 6])
        ['V', 'L', 'VA', 'VO']
    """
    out, taken = [""] * len(names), {"", "?"}
    for i in sorted(range(len(names)), key=lambda i: (-often[i], i)):
        out[i] = next(x for x in _candidates(names[i]) if x not in taken)
        taken.add(out[i])
    return out


def _candidates(name: str) -> Iterator[str]:
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    letters = [word[0].upper()[:1] for word in words]
    first = letters[0] if letters else "#"
    yield first
    if len(letters) > 1:
        yield letters[0] + letters[1]
    yield from (first + x.upper()[:1] for x in "".join(words)[1:])
    yield from (f"{first}{k}" for k in count(1))
