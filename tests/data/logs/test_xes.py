"""XES: activities that never complete, bad traces, and files that unpack to too much."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_rudder.data.logs import read_log, xes
from align_rudder.data.logs.lifecycle import happened

ENDS = ("complete", "ate_abort", "pi_abort", "withdraw", None)


def event(name, transition=None, instance=None):
    keys = {"concept:name": name, "lifecycle:transition": transition, "concept:instance": instance}
    return {key: value for key, value in keys.items() if value is not None}


def of(attributes):
    return "".join(f'<string key="{k}" value="{v}"/>' for k, v in attributes.items())


def log_of(*traces):
    inside = ("".join(f"<event>{of(e)}</event>" for e in trace) for trace in traces)
    return f"<log>{''.join(f'<trace>{trace}</trace>' for trace in inside)}</log>"


@given(st.data())
def test_each_instance_of_an_activity_is_one_event(data):
    """Instances run side by side; each is where it completes, or else where it began."""
    queues = []
    for i in range(data.draw(st.integers(1, 6))):
        steps = data.draw(st.lists(st.sampled_from(("schedule", "start", "suspend")), unique=True))
        steps += [end for end in [data.draw(st.sampled_from(ENDS))] if end]
        name = data.draw(st.sampled_from("ab"))
        if steps:
            queues.append(
                [event(name, data.draw(st.sampled_from((s, s.upper()))), str(i)) for s in steps]
            )
    order = data.draw(st.permutations([k for k, queue in enumerate(queues) for _ in queue]))
    events, places = [], {}
    for k in order:
        one = queues[k].pop(0)
        if k not in places or one["lifecycle:transition"].lower() == "complete":
            places[k] = len(events)
        events.append(one)
    assert happened(events) == sorted(places.values())


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ("a:start b:start a:complete", [1, 2]),
        ("a:start a:start a:complete", [1, 2]),
        ("a:start a:start a:complete a:complete", [2, 3]),
        ("a:complete a:complete", [0, 1]),
        ("a:start a:ate_abort a:start a:complete", [0, 3]),
        ("a:ate_abort b:complete", [0, 1]),
        ("a:schedule a:start", [0]),
        ("a: a: b:start", [0, 1, 2]),
        ("a:queued a:queued a:accepted", [0, 1, 2]),  # not the standard's: each is an event
    ],
)
def test_instances_without_a_name(steps, wanted):
    assert happened([event(*step.split(":")) for step in steps.split()]) == wanted


def test_an_aborted_activity_is_an_event_of_its_run(tmp_path):
    path = tmp_path / "x.xes"
    trace = [event("a", "complete"), event("cancel", "ate_abort"), event("b", "start")]
    path.write_text(log_of(trace))
    (run,) = read_log(path).runs
    assert [entry.name for entry in run.entries] == ["a", "cancel", "b"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("<event></event>", "event 1 has no concept:name"),
        ('<int key="n" value=""/><event></event>', "line 2: '' is no int (n)"),
        ('<event><float key="cost" value="dear"/></event>', "line 2: 'dear' is no float (cost)"),
    ],
)
def test_a_bad_trace_leaves_the_others(tmp_path, bad, why):
    good = log_of([event("a")], [event("b")])
    path = tmp_path / "x.xes"
    path.write_text(good.replace("</trace><trace>", f"</trace>\n<trace>{bad}</trace><trace>"))
    log = read_log(path)
    assert [(run.name, run.entries[0].name) for run in log.runs] == [
        ("x.xes: 1", "a"),
        ("x.xes: 3", "b"),
    ]
    (fault,) = log.faults
    assert f"x.xes, trace '2' is left out: {why}" in fault


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_ends_too_early_keeps_its_whole_traces(tmp_path, packed):
    names = [f"{i}" * 40 for i in range(400)]
    content = log_of(*[[event(name)] for name in names]).encode()
    path = tmp_path / f"x.xes{'.gz' * packed}"
    whole = gzip.compress(content) if packed else content
    path.write_bytes(whole[: 2 * len(whole) // 3])
    log = read_log(path)
    n = len(log)
    assert 200 < n < 300 or packed
    assert 0 < n < 400
    assert [run.entries[0].name for run in log.runs] == names[:n]
    (fault,) = log.faults
    assert f"what follows trace {n} is lost, as it is damaged: " in fault
    assert "write it again, whole" in fault


def test_one_attribute_has_a_bound(tmp_path):
    """A small file that unpacks to one huge attribute is refused before all of it is unpacked."""
    path = tmp_path / "x.xes.gz"
    head, tail = log_of([event("a")]).encode().split(b"a", 2)[0], b'"/></event></trace></log>'
    path.write_bytes(gzip.compress(head + b"w" * 2**26 + tail, 1))
    with pytest.raises(ValueError, match=r"line 1 has an element of more than 16,777,216 bytes"):
        read_log(path)


def test_packed_files_have_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(xes, "_FREE", 2**21)
    path = tmp_path / "x.xes.gz"
    content = log_of(*([event("a")],) * 100_000).encode()
    path.write_bytes(gzip.compress(content))
    assert len(content) > 2**21
    with pytest.raises(ValueError, match="more than 200 times its size; unpack it with gzip"):
        read_log(path)
    (tmp_path / "x.xes").write_bytes(content)
    assert len(read_log(tmp_path / "x.xes")) == 100_000
