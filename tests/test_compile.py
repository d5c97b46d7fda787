"""Compiling goes on where numba has no folder for its cache."""

from types import SimpleNamespace

import numba

from align_rudder import _compile
from align_rudder._compile import njit


def test_without_a_folder_for_the_cache_functions_are_compiled_all_the_same(monkeypatch):
    asked = []
    real = numba.njit

    def refusing(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(_compile, "numba", SimpleNamespace(njit=refusing))

    @njit(cache=True, nogil=True)
    def double(x):
        return 2 * x

    assert double(21) == 42
    assert asked == [{"cache": True, "nogil": True}, {"cache": False, "nogil": True}]
