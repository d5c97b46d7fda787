"""Small logs of activities, and strategies of hypothesis for logs."""

from hypothesis import strategies as st

from align_rudder.data.logs import Entry, Message, Run, RunLog

ROLES = ("system", "user", "assistant", "tool")


def case(words, success, name=None, group=None, ret=None):
    """Return a case of a process from words."""
    entries = tuple(Entry("activity", word, i) for i, word in enumerate(words.split()))
    if ret is None and success is not None:
        ret = float(success)
    return Run(name or words, entries, success=success, ret=ret, group=group)


def log_of(*counted):
    """Return a log from (words, success, how often)."""
    return RunLog(tuple(case(words, ok) for words, ok, n in counted for _ in range(n)))


def hard_and_easy(cause=False):
    """Return ten tasks of six runs: hard ones search, and fail more; or booking fails in all."""
    runs = []
    for task in range(10):
        hard = task % 2
        for i in range(6):
            good = i % 3 == 0 if hard else i % 3 > 0
            words = "look search pay send" if hard else "look pay send"
            words = words.replace("pay", "pay book") if cause and not good else words
            runs.append(case(words, good, f"{task}.{i}", f"task {task}"))
    runs += [case("look search send", False, f"none.{i}", "hopeless") for i in range(6)]
    return RunLog(tuple(runs))


@st.composite
def conversations(draw):
    """Return a run of messages in any order, some with calls, that succeeded or not."""
    roles = draw(st.lists(st.sampled_from(ROLES), min_size=1, max_size=12))
    roles[draw(st.integers(0, len(roles) - 1))] = "assistant"
    entries = []
    for i, role in enumerate(roles):
        if role in ("assistant", "user"):
            names = draw(st.lists(st.sampled_from("abcde"), max_size=2))
            entries += [Entry("call", name, i) for name in names] or [Entry("message", role, i)]
    success = draw(st.booleans())
    ret = draw(st.one_of(st.none(), st.floats(-1e3, 1e3)))
    messages = tuple(Message(role, "…") for role in roles)
    name = f"run {draw(st.integers(0, 99))}"
    return Run(name, tuple(entries), messages, success=success, ret=ret)


@st.composite
def logs(draw):
    """Return a log in which at least one run with an event succeeded."""
    runs = draw(st.lists(conversations(), min_size=1, max_size=15))
    first = Run(
        "first",
        (Entry("call", "a", 0), Entry("call", "b", 0)),
        (Message("assistant", "go"),),
        success=True,
    )
    return RunLog((first, *runs))
