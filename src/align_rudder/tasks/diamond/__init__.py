"""ObtainDiamond on Craftax-Classic: the task, its expert and ten demonstrations."""

from importlib.util import find_spec

if find_spec("jax") is None or find_spec("craftax") is None:
    raise ImportError(
        "the diamond task needs JAX and Craftax; in a clone: pip install '.[diamond]'"
    )
