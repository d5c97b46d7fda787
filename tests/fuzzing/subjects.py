"""Files of every kind, how each is opened, and what must hold if it is taken."""

import gzip
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.data.sources import load_source
from align_rudder.episodes import tree_index
from align_rudder.logs import report_data as log_data
from align_rudder.logs.text import as_text
from align_rudder.show.report.data import report_data
from fuzzing import mutations


class WrongError(Exception):
    """A file was taken, and what it gave is wrong."""


@dataclass
class Subject:
    """A kind of file.

    Attributes:
        name: Its name.
        file: The name of the file.
        content: A whole file.
        use: Opens a file at a path and uses it; returns nothing, or raises `WrongError`.
        change: Returns a damaged copy from (content, other files, rng).
        others: Files to take parts from.
    """

    name: str
    file: str
    content: bytes
    use: Callable[[Path], None]
    change: Callable[..., bytes]
    others: list[bytes] = field(default_factory=list)

    def mutant(self, rng):
        """Return the bytes of a damaged file."""
        if rng.random() < 0.15:
            return mutations.damage(self.content, rng)
        if self.others and rng.random() < 0.03:
            return mutations.draw(rng, self.others)
        return self.change(self.content, self.others, rng)


# What must hold


def same(a, b, what, size):
    if not np.allclose(a, b, rtol=1e-9, atol=1e-9 * (1 + size)):
        raise WrongError(f"{what}: {a} is not {b}")


def check_rewards(rr, ret):
    """What was given is finite and, with the correction, the return."""
    if not (np.isfinite(rr.rewards).all() and math.isfinite(rr.correction)):
        raise WrongError(f"rewards {rr.rewards}, correction {rr.correction}")
    if not np.isfinite(rr.scores).all():
        raise WrongError(f"scores {rr.scores}")
    size = np.abs(rr.rewards).sum() + abs(ret)
    same(rr.rewards.sum() + rr.correction, ret, "the return", size)
    return size


def check_online(model, episode, rr, size):
    """One step at a time, alone and beside others, gives the same as the whole episode."""
    one, many = model.stream(), model.vector_stream(2)
    infos = episode.infos if episode.infos is not None else [{}] * len(episode)
    first = tree_index(episode.observations, np.array([0, 0]))
    one.reset(tree_index(episode.observations, 0))
    many.reset(first)
    given, beside = [], []
    for t in range(len(episode)):
        at, then = np.array([t, t]), np.array([t + 1, t + 1])
        step = (
            tree_index(episode.observations, t),
            tree_index(episode.actions, t),
            float(episode.rewards[t]),
            tree_index(episode.observations, t + 1),
            infos[t],
        )
        given.append(one.step(*step))
        steps = (
            tree_index(episode.observations, at),
            tree_index(episode.actions, at),
            episode.rewards[at],
            tree_index(episode.observations, then),
            [infos[t]] * 2,
        )
        beside.append(many.step(*steps)[1])
    same(given, rr.rewards, "online", size)
    same(beside, rr.rewards, "online beside others", size)
    same(one.correction, rr.correction, "the correction online", size)


def use_model(model, episodes, sequences):
    """Redistribute, online and offline, and show what there is."""
    for episode in episodes:
        rr = model.redistribute(episode)
        check_online(model, episode, rr, check_rewards(rr, episode.ret))
        if isinstance(model, ar.AlignRudder):
            model.progress_of(model.encode(episode))
    for sequence in sequences:
        rr = model.redistribute_events(sequence, 1.0)
        size = check_rewards(rr, 1.0)
        stream = model.stream()
        stream.reset()
        same([stream.step_event(s) for s in sequence], rr.rewards, "online", size)
    if isinstance(model, ar.AlignRudder):
        given = [*episodes, *((s, 1.0) for s in sequences)]
        json.dumps(report_data(model, given), allow_nan=False)
        model.summary()
        for k in range(len(model.strategies_)):
            model.subtasks(strategy=k)


def of_model(cls, episodes=(), sequences=(), **options):
    def use(path):
        use_model(cls.load(path, **options), episodes, sequences)

    return use


def of_episodes(model):
    """Episodes are redistributed with a model, and taken as demonstrations."""

    def use(path):
        episodes = ar.load_episodes(path)
        for episode in episodes[:3]:
            rr = model.redistribute(episode)
            check_online(model, episode, rr, check_rewards(rr, episode.ret))
        fitted = ar.AlignRudder().fit(episodes)
        for episode in episodes[:2]:
            rr = fitted.redistribute(episode)
            size = check_rewards(rr, episode.ret)
            check_online(fitted, episode, rr, size)
            again = through_file(fitted, path).redistribute(episode)
            same(again.rewards, rr.rewards, "the loaded model", size)

    return use


def through_file(model, path):
    """What can be fitted can be saved, and what is saved can be loaded."""
    fitted = path.with_name("fitted.npz")
    model.save(fitted)
    try:
        return ar.AlignRudder.load(fitted)
    except ValueError as error:
        raise WrongError(f"a model that was saved is refused: {error}") from error


def use_source(path):
    """Sequences are taken as demonstrations, and redistributed."""
    source = load_source(str(path))
    if source.episodes is not None:
        fitted = source.fit(ar.AlignRudder())
        for episode, rr in zip(source.episodes, source.redistribute(fitted)):
            check_rewards(rr, episode.ret)
        return
    model = source.fit(ar.AlignRudder(gap=0.25))
    for rr, ret in zip(source.redistribute(model), source.returns):
        check_rewards(rr, ret)
    same(through_file(model, path).scale_, model.scale_, "C of the loaded model", 1)


def use_log(path):
    """Runs are fitted, shown, and their turns are given what sums to the outcome."""
    log = ar.read_log(path)
    model = ar.LogModel("tool+error+message").fit(log)
    json.dumps(log_data(model, log), allow_nan=False)
    as_text(log_data(model, log), groups=True)
    for run in log.runs:
        if run.ret is None or not run.turns:
            continue
        rewards = [r for r in model.turn_rewards(run) if r is not None]
        same(sum(rewards), run.ret, "the outcome", abs(run.ret) + abs(model.worth_))
    saved = path.with_name("fitted-log.json")
    model.save(saved)
    try:
        again = ar.LogModel.load(saved)
    except ValueError as error:
        raise WrongError(f"a model that was saved is refused: {error}") from error
    same(*([m.score(run) for run in log.runs] for m in (again, model)), "loaded scores", 1)


def of_log_model(log):
    """A model of a log gives other runs rewards."""

    def use(path):
        model = ar.LogModel.load(path)
        json.dumps(log_data(model, log), allow_nan=False)
        for run in log.runs:
            rewards = [r for r in model.turn_rewards(run) if r is not None]
            same(sum(rewards), run.ret, "the outcome", 1 + abs(model.worth_))

    return use


def use_alignment(path):
    alignment = ar.Alignment.from_fasta(path)
    if not math.isfinite(alignment.score):
        raise WrongError(f"score {alignment.score}")
    str(alignment)


# The files


def archive(content, others, rng):
    return mutations.change_archive(content, others, rng)


def text(content, others, rng):
    return mutations.change_text(content.decode(), rng)


def whole_json(content, others, rng):
    if rng.random() < 0.2:
        return mutations.change_text(content.decode(), rng)
    changed = mutations.change_json(json.loads(content), rng)
    return changed.encode(errors="surrogatepass")


def walks(rng, n=5):
    """Return walks along a line of states, paid at its end."""
    out = []
    for _ in range(n):
        states = [0]
        while states[-1] < 6:
            states.append(max(states[-1] + int(rng.choice([1, 1, 1, 0, -1])), 0))
        rewards = np.zeros(len(states) - 1)
        rewards[-1] = 1.0
        out.append(ar.Episode(states, np.diff(states) + 1, rewards))
    return out


def event_of(obs, action, reward, next_obs, info):
    return int(next_obs) if int(next_obs) % 2 == 0 else None


def model_subjects(folder, rng):
    """Yield models of every encoder, with gaps and several strategies, and LSTMs."""
    line = walks(rng)
    words = [["key", "door", "chest"], ["key", "lamp", "door", "chest"], ["key", "door", "chest"]]
    asked = [["key", "cat", "door"], ["chest"], []]
    two = [list("abcdef")] * 4 + [list("uvwxyz")] * 3
    odd = [[("a", 1), b"x", frozenset([1]), None, 2.5], [("a", 1), b"x", frozenset([1]), 2.5]]
    texts = [
        ar.Episode(np.array([f"s{s}" for s in e.observations]), e.actions, e.rewards) for e in line
    ]
    dicts = [
        ar.Episode({"at": e.observations, "x": e.observations % 3}, e.actions, e.rewards)
        for e in line
    ]
    vectors = [
        ar.Episode(
            np.stack([e.observations, e.observations**2], 1) + rng.normal(size=(len(e) + 1, 2)),
            rng.normal(size=(len(e), 2)),
            e.rewards,
        )
        for e in line
    ]
    crafts, new = crafting_demonstrations(4), [crafting_episode(77), crafting_episode(78, False)]
    fitted = {
        "symbols": (ar.AlignRudder().fit_events(words, [1, 2, 0.5]), (), asked),
        "symbols with gap": (ar.AlignRudder(gap=0.5).fit_events(words), (), asked),
        "two strategies": (ar.AlignRudder(scoring="log").fit_events(two), (), [list("abuvwc")]),
        "three strategies": (
            ar.AlignRudder(scoring="karlin-altschul", strategies=3).fit_events(words),
            (),
            asked,
        ),
        "own scores": (ar.AlignRudder(scoring=np.eye(4) * 3 - 1).fit_events(words), (), asked),
        "odd symbols": (ar.AlignRudder().fit_events(odd), (), odd),
        "states": (ar.AlignRudder(ar.StateEvents(5)).fit(line[:4]), line[4:], ()),
        "texts": (ar.AlignRudder().fit(texts[:4]), texts[4:], ()),
        "dict states": (ar.AlignRudder(ar.StateEvents(keys=["at"])).fit(dicts[:4]), dicts[4:], ()),
        "actions": (ar.AlignRudder(ar.SymbolEvents("action")).fit(line[:4]), line[4:], ()),
        "changes": (ar.AlignRudder(gap=0.1).fit(crafts), new, ()),
        "vector changes": (
            ar.AlignRudder(ar.DeltaEvents(4), strategies=1).fit(vectors[:4]),
            vectors[4:],
            (),
        ),
        "combined": (
            ar.AlignRudder(ar.DeltaEvents(3) + ar.FeatureEvents(4, n_features=5), strategies=1).fit(
                vectors[:4]
            ),
            vectors[4:],
            (),
        ),
        "features": (
            ar.AlignRudder(ar.FeatureEvents(4, n_features=5), strategies=1).fit(vectors[:4]),
            vectors[4:],
            (),
        ),
    }
    for name, (model, episodes, sequences) in fitted.items():
        model.save(folder / "model.npz")
        use = of_model(ar.AlignRudder, episodes, sequences)
        yield Subject(name, "model.npz", (folder / "model.npz").read_bytes(), use, archive)
    ar.AlignRudder(event_of).fit(line[:4]).save(folder / "model.npz")
    use = of_model(ar.AlignRudder, line[4:], (), function=event_of)
    yield Subject("function", "model.npz", (folder / "model.npz").read_bytes(), use, archive)
    for name, episodes in (("lstm", line), ("lstm of vectors", vectors)):
        failed = [ar.Episode(e.observations, e.actions, e.rewards * 0) for e in episodes[2:4]]
        model = ar.LstmRudder(hidden=3, updates=5).fit(episodes[:2], failed)
        model.save(folder / "lstm.npz")
        content = (folder / "lstm.npz").read_bytes()
        yield Subject(name, "lstm.npz", content, of_model(ar.LstmRudder, episodes[4:]), archive)
    yield from episode_subjects(folder, line, texts, dicts, vectors, crafts[:2])


def episode_subjects(folder, line, texts, dicts, vectors, crafts):
    """Yield files of episodes of all kinds of observations."""
    tuples = [
        ar.Episode((e.observations, e.observations * 0.5), (e.actions, e.actions), e.rewards)
        for e in line
    ]
    infos = [
        ar.Episode(
            e.observations, e.actions, e.rewards, infos=[{"n": [t, None]} for t in range(len(e))]
        )
        for e in line
    ]
    for name, episodes in {
        "episodes of states": line,
        "episodes of texts": texts,
        "episodes of dicts": dicts,
        "episodes of vectors": vectors,
        "episodes of tuples": tuples,
        "episodes with infos": infos,
        "episodes of inventories": crafts,
    }.items():
        ar.save_episodes(folder / "episodes.npz", episodes[:3])
        model = ar.AlignRudder(strategies=1).fit(episodes[:3])
        content = (folder / "episodes.npz").read_bytes()
        yield Subject(name, "episodes.npz", content, of_episodes(model), archive)
    np.savez(
        folder / "plain.npz",
        observations=np.concatenate([e.observations for e in line[:3]]),
        actions=np.concatenate([e.actions for e in line[:3]]),
        rewards=np.concatenate([e.rewards for e in line[:3]]),
        lengths=[len(e) for e in line[:3]],
    )
    model = ar.AlignRudder(strategies=1).fit(line[:3])
    content = (folder / "plain.npz").read_bytes()
    yield Subject("plain arrays", "episodes.npz", content, of_episodes(model), archive)


def text_subjects(folder):
    """Yield sequences as text, and hyper-parameters."""
    from align_rudder.studies.rooms.methods import chosen_parameters

    lines = [
        {"events": ["key", "door", {"at": [1, 2]}], "return": 2.0},
        ["key", 3, "door", None, {"at": [1, 2]}],
        {"events": ["key", "door", 0.5]},
    ]
    content = "\n".join(json.dumps(line) for line in lines).encode() + b"\n"
    yield Subject("JSON lines", "logs.jsonl", content, use_source, text)
    fasta = b">a return=0.5\nKD-C\n>b\nKLDC\n>c return=2\nK-DC\n"
    yield Subject("FASTA", "logs.fasta", fasta, use_source, text)
    yield Subject("alignment in FASTA", "aligned.fasta", fasta, use_alignment, text)
    held = {name: values for name, values in chosen_parameters().items() if name != "kappa"}
    tuned = json.dumps({"how": "by hand", "parameters": held}).encode()
    yield Subject("hyper-parameters", "tuned.json", tuned, chosen_parameters, whole_json)


def packed(content, others, rng):
    """Damage what is in a gzip file, or the file."""
    if rng.random() < 0.3:
        return mutations.damage(content, rng)
    return gzip.compress(mutations.change_text(gzip.decompress(content).decode(), rng), mtime=0)


def log_subjects(folder):
    """Yield logs of runs in every form, and a model of one."""
    words = [("look read edit test send", True), ("look edit test send", False)]
    runs, lines, traces = [], ["case,activity,time,outcome"], []
    for i, (said, good) in enumerate((words * 4)[:7]):
        messages, steps, events = [{"role": "user", "content": "please"}], [], []
        for t, tool in enumerate(said.split()):
            function = {"name": tool, "arguments": json.dumps({"n": t})}
            calls = [{"id": str(t), "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": str(t), "content": "Error: no"})
            steps.append({"action": tool, "observation": "ok", "thought": "so"})
            events.append(f'<event><string key="concept:name" value="{tool}"/></event>')
            lines.append(f"{i},{tool},{t},{'yes' if good else 'no'}")
        runs.append({"traj": messages, "reward": float(good), "task_id": i % 2})
        outcome = f'<boolean key="success" value="{str(good).lower()}"/>'
        traces.append(f"<trace>{outcome}{''.join(events)}</trace>")
    xes = f"<log>{''.join(traces)}</log>".encode()
    used = {"type": "tool_use", "id": "1", "name": "look", "input": {"n": 1}}
    answer = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "x"}]}
    said = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [answer]}]
    parts = [{"messages": said * 3, "reward": i % 2} for i in range(6)]
    phase = '<string key="lifecycle:transition" value="{}"/></event>'
    lifecycle = xes.decode().replace("</event>", phase.format("start"), 9)
    lifecycle = lifecycle.replace('"/></event>', '"/>' + phase.format("complete"), 9)
    trajectory = json.dumps({"trajectory": steps, "info": {"resolved": 1}, "resolved": True})
    for name, content, change in (
        ("runs.json", json.dumps(runs).encode(), whole_json),
        ("runs.jsonl", "\n".join(map(json.dumps, runs)).encode(), text),
        ("run.traj", trajectory.encode(), whole_json),
        ("cases.xes", xes, text),
        ("cases.xes.gz", gzip.compress(xes, mtime=0), packed),
        ("cases.csv", "\n".join(lines).encode(), text),
        ("parts.json", json.dumps(parts).encode(), whole_json),
        ("lifecycle.xes", lifecycle.encode(), text),
    ):
        yield Subject(f"log {name}", name, content, use_log, change)
    (folder / "runs.json").write_text(json.dumps(runs))
    log = ar.read_log(folder / "runs.json")
    ar.LogModel().fit(log).save(folder / "log-model.json")
    content = (folder / "log-model.json").read_bytes()
    yield Subject("log model", "log-model.json", content, of_log_model(log), whole_json)


def subjects(folder):
    """Return all kinds of files, made anew in a folder."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fuzzing import studies  # which takes its time, and needs this module

        found = [
            *model_subjects(folder, rng),
            *text_subjects(folder),
            *log_subjects(folder),
            *studies.all_subjects(folder, rng),
        ]
    archives = [one.content for one in found if one.change is archive]
    for one in found:
        if one.change is archive:
            one.others = archives
        else:
            one.others = [other.content for other in found if other is not one]
    return found
