"""GAIL on event logs: what the discriminator is shown, and what is learned."""

from collections import Counter

import numpy as np
import pytest
from small_recipes import GREEDY, small_recipe

from align_rudder.baselines import learn_gail_events
from align_rudder.baselines.gail_events import _train, remembered_pairs
from align_rudder.baselines.protocol import Trial
from align_rudder.tasks.mdp import remembering


def memory_of(env):
    """Return the table of an agent that remembers, and what it knows in each state."""
    mdp = remembering(env.mdp)
    return mdp, np.arange(mdp.n_states) // env.mdp.n_states


def test_pairs_of_a_log_are_those_that_its_replay_meets():
    """An event happens in a state whose memory is the event before: steps of the table say so."""
    env, logs = small_recipe(length=6)
    mdp, known = memory_of(env)
    for log in logs:
        expected, last = [], None
        for symbol in log:
            before = 0 if last is None else 1 + env.symbols.index(last)
            expected.append([before, env.symbols.index(symbol)])
            last = symbol
        assert remembered_pairs(log, env.symbols).tolist() == expected
    rng, state, met, happened = np.random.default_rng(0), int(mdp.starts.argmax()), [], []
    for t in range(1, 200):
        action = int(rng.integers(4))
        label = int(mdp.labels[state, action, 0])
        if label >= 0:
            met.append([int(known[state]), label])
            happened.append(env.symbols[label])
        state, _, ended = mdp.step(state, action, min(t, mdp.horizon), 0.5)
        if ended:
            break
    assert len(met) > 5
    assert remembered_pairs(happened, env.symbols).tolist() == met


def test_the_discriminator_learns_the_odds_of_logs_and_agent():
    """The policy stands still (no rates): log-odds are those of how often each pair comes."""
    env, logs = small_recipe(length=4)
    mdp, known = memory_of(env)
    shown = np.concatenate([remembered_pairs(log, env.symbols) for log in logs])
    trial = Trial(mdp, [], GREEDY, 0, [1.0])
    logits, values = np.zeros((mdp.n_observations, 4)), np.zeros(mdp.n_observations)
    end = int(known.max()) + 1
    scores = np.zeros((end + 1, len(env.symbols)))
    closed = np.concatenate([shown, np.tile([end, 0], (10 * len(logs), 1))])
    rule = (0.0, 0.0, 0.02, 0.9, 0.9, 0.0, 0, 10)
    seen = (trial.observed, known, mdp.labels.astype(np.int64))
    _train(logits, values, scores, closed, rule, seen, trial.tables, 1.0, 300, trial.rng)
    agent, rng = Counter(), np.random.default_rng(0)
    for _ in range(300):
        state = int(mdp.starts.argmax())
        for t in range(1, mdp.horizon + 1):
            action = int(rng.integers(4))
            label = int(mdp.labels[state, action, 0])
            agent[int(known[state]), label] += label >= 0
            state, _, ended = mdp.step(state, action, t, 0.5)
            if ended:
                agent[end, 0] += 10
                break
    logged = Counter(map(tuple, closed.tolist()))
    pairs = [pair for pair in logged if logged[pair] >= 3 and agent[pair] >= 30]
    odds = [logged[p] / sum(logged.values()) / (agent[p] / sum(agent.values())) for p in pairs]
    found = [scores[p] for p in pairs]
    assert len(pairs) >= 5
    np.testing.assert_allclose(found, np.log(odds), atol=0.6)
    never = next(p for p in agent if agent[p] > 100 and not logged[p])
    assert scores[never] < -1


@pytest.mark.parametrize("reward", ["positive", "difference"])
def test_a_small_recipe_is_learned_with_and_without_the_inventory(reward):
    env, logs = small_recipe(1)
    full, _ = small_recipe(1, hidden=False)
    mdp, known = memory_of(env)
    shown = [remembered_pairs(log, env.symbols) for log in logs]
    staged = [np.column_stack([full.stages(log)[:-1], s[:, 1]]) for log, s in zip(logs, shown)]
    stage = np.arange(full.mdp.n_states) // full.size**2
    for table, pairs, knows in ((mdp, shown, known), (full.mdp, staged, stage)):
        options = {"reward": reward, "policy_rate": 0.3, "seed": 2, "protocol": GREEDY}
        first, again = (learn_gail_events(table, pairs, knows, **options) for _ in range(2))
        assert first.solved
        assert first.episodes == again.episodes
        np.testing.assert_array_equal(first.q, again.q)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reward": "airl"}, "reward='airl'"),
        ({"gamma": 1.0}, r"gamma is 1\.0"),
        ({"ends": -1}, "ends is -1"),
        ({"known": np.zeros(3, int)}, r"known has shape \(3,\)"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong, message):
    env, logs = small_recipe()
    mdp, known = memory_of(env)
    shown = [remembered_pairs(log, env.symbols) for log in logs]
    with pytest.raises(ValueError, match=message):
        learn_gail_events(mdp, shown, **{"known": known, **wrong})
