"""Sub-agents for the sub-tasks of an alignment, and a manager that runs them; in JAX.

Environment-neutral: a *task* (see `task.Task`) gives pure functions to reset, step and observe one
environment; everything here is written for one and vectorised over thousands.
"""
