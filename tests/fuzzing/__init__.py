"""A fuzzer of our own: damaged, swapped and hostile files, and odd command lines.

`tools/fuzz.py` runs it in large, `tests/project/test_fuzzing.py` in small. Every case follows from
its number alone, so that a failure is run again by it.
"""
