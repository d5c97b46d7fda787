"""The verdict: what it says of good and of bad demonstrations."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.show.report import report_data
from align_rudder.summary import last_step_share


def test_verdict_of_a_shared_strategy(crafting, episodes):
    verdict = report_data(crafting, episodes)["verdict"]
    assert verdict["state"] == "good"
    assert "All 6 demonstrations share one strategy" in verdict["headline"]
    assert verdict["warnings"] == []
    numbers = verdict["numbers"]
    assert numbers["redistributed"] == pytest.approx(1.0)
    assert numbers["columns"] == [len(crafting.profile_)]
    assert numbers["conservation"][0] == pytest.approx(crafting.profile_.conservation.mean(), 1e-3)
    assert 0.3 < numbers["agreement"][0] <= 1


def warned(shown):
    return " ".join(f"{w['what']} {w['do']}" for w in shown["verdict"]["warnings"])


def test_warnings_say_what_is_wrong_and_what_to_do():
    with pytest.warns(ar.AlignRudderWarning):
        none = ar.AlignRudder().fit_events([[f"{k}{i}" for k in "abcd"] for i in range(4)])
    shown = report_data(none)
    assert shown["verdict"]["state"] == "bad"
    assert "No common strategy" in warned(shown)
    assert shown["strategies"] == []
    assert shown["verdict"]["numbers"]["redistributed"] == 0

    with pytest.warns(ar.AlignRudderWarning):
        many = ar.AlignRudder().fit_events([range(30), range(30)])
    assert "Too many events: 30" in warned(report_data(many))
    assert "max_events" in warned(report_data(many))

    with pytest.warns(ar.AlignRudderWarning):
        outlier = ar.AlignRudder().fit_events(["ABCDEF", "ABCDEF", "ABCDEF", "XYZXYZ"])
    assert "agree with no other one: 3" in warned(report_data(outlier))

    pair = ar.AlignRudder().fit_events(["ABC", "ABC"])
    shown = report_data(pair, [("QQ", 0.0), ("", 1.0), ("ABC", 1.0)], max_episodes=2)
    assert "only two demonstrations" in warned(shown)
    assert "Episode 0: no event that the model knows. Is it of the same task?" in warned(shown)
    assert "Episode 1: no event at all. That may be so where nothing was done" in warned(shown)
    assert "1 more episode was given and not shown" in warned(shown)
    unlike = report_data(pair, [("QQ", 0.0), ("RS", 1.0)])
    assert "Episode 0, Episode 1: no event that the model knows. Are they of" in warned(unlike)
    assert "same task" not in warned(report_data(pair, [("", 0.0)]))
    assert "Both demonstrations" in shown["verdict"]["headline"]
    uneven = ar.AlignRudder().fit_events(["ABC", "ABC", "ABC"], [0.1, 1.0, 4.0])
    assert "do not explain how the returns differ" in warned(report_data(uneven))


def test_two_strategies():
    first, second = "ABCDEFAB", "UVWXYZUV"
    model = ar.AlignRudder().fit_events([first] * 4 + [second] * 3)
    shown = report_data(model, [(second, 1.0)])
    assert "2 strategies, of 4 and 3" in shown["verdict"]["headline"]
    assert shown["episodes"][0]["strategy"] == 1
    assert [d["strategy"] for d in shown["demonstrations"]] == [0] * 4 + [1] * 3


def doubtful(what):
    """Return a model that one should not trust."""
    if what == "A random policy earns":
        runs = ["ABCDEF"] * 5
        return ar.AlignRudder(strategies=1).fit_events(runs, random_sequences=["ABCDE", "ABCDF"])
    if what == "1 of 4 demonstrations were not paid":
        return ar.AlignRudder().fit_events(["ABCDEF"] * 4, [1, 1, 0, 1])
    if what == "A strategy has 31 sub-goals":
        return ar.AlignRudder().fit_events([range(31)] * 3)
    if what == "There is an event at nearly every step":
        walk = ar.Episode(np.arange(41), np.zeros(40), np.eye(40)[-1])
        return ar.AlignRudder(ar.StateEvents(60, preference=None)).fit([walk] * 3)
    if what == "What a random policy earns is not known":
        way = ar.Episode(np.repeat([[0.0], [4.0], [9.0]], 9, axis=0), np.zeros(26), np.eye(26)[-1])
        return ar.AlignRudder(ar.FeatureEvents(3, gamma=0.9), strategies=1).fit([way] * 4)
    if what == "A few demonstrations do not show":
        return ar.AlignRudder().fit_events(["ABCD", "ABD"])
    return ar.AlignRudder(strategies=1).fit_events([[1, "1", "x"]] * 3)


@pytest.mark.filterwarnings("ignore::align_rudder.AlignRudderWarning")
@pytest.mark.parametrize(
    "what",
    [
        "A random policy earns",
        "1 of 4 demonstrations were not paid",
        "A strategy has 31 sub-goals",
        "There is an event at nearly every step",
        "What a random policy earns is not known",
        "A few demonstrations do not show",
        "Different kinds of event have the same name: 1.",
    ],
)
def test_what_speaks_against_a_model_is_said_and_the_light_is_not_green(what):
    model = doubtful(what)
    verdict = report_data(model)["verdict"]
    assert verdict["state"] != "good"
    assert any(w["what"].startswith(what) and w["do"] for w in verdict["warnings"])
    assert f"take care: {what}" in model.summary()
    if model.random_share_ is not None:
        assert verdict["headline"].startswith("A random policy earns ")


def named(obs, action, reward, next_obs, info):
    return f"state {next_obs % 7}"


def test_an_event_at_every_step_is_said_of_functions_and_not_of_logs():
    walk = ar.Episode(np.arange(41), np.zeros(40), np.eye(40)[-1])
    model = ar.AlignRudder(named, strategies=1).fit([walk] * 3)
    assert "an event at nearly every step" in warned(report_data(model))
    log = [e % 7 for e in range(40)] + ["end"]
    logs = ar.AlignRudder(strategies=1).fit_events([log] * 3)
    assert "nearly every step" not in warned(report_data(logs))


def test_a_model_that_found_no_events_says_so():
    rng = np.random.default_rng(0)
    noise = [ar.Episode(rng.normal(size=(60, 2)), np.zeros(59), np.eye(59)[-1]) for _ in range(6)]
    lost = [ar.Episode(e.observations, e.actions, 0 * e.rewards) for e in noise[4:]]
    with pytest.warns(ar.AlignRudderWarning) as caught:
        model = ar.AlignRudder().fit(noise[:4], lost)
    assert any("no events were found" in str(w.message) for w in caught)
    shown = report_data(model)
    assert shown["verdict"]["state"] == "bad"
    assert "No demonstration holds an event" in warned(shown)
    assert model.random_share_ is None


@pytest.mark.parametrize("chance_known", [True, False])
def test_a_reward_that_stays_on_the_last_step_is_said_and_the_light_is_not_green(chance_known):
    """Random episodes do all but the last thing, so that all but nothing is paid for that."""
    by_chance = ["ABCDE"] * 30
    model = ar.AlignRudder(strategies=1).fit_events(["ABCDEF"] * 5, random_sequences=by_chance)
    if not chance_known:
        model.random_share_ = None
    verdict = report_data(model)["verdict"]
    shares = model.demonstration(0).rewards
    kept = shares[-1] / shares.sum()
    assert kept > 0.9
    assert verdict["numbers"]["last_step"] == pytest.approx(kept, abs=1e-4)
    assert verdict["state"] == "fair"
    said = f"{kept:.0%} of the reward stays on the last step"
    assert any(
        w["what"].startswith(said) and "other events" in w["do"] for w in verdict["warnings"]
    )
    assert f"take care: {said}" in model.summary()
    if chance_known:
        assert model.random_share_ < 0.2
        of_this = f"of this reward, {kept:.0%} of which stays on the last step"
        assert of_this in model.summary().splitlines()[0]
        assert of_this in verdict["headline"]
    else:
        assert verdict["headline"].startswith(f"{said}. All 5 demonstrations")


def test_done_is_the_last_step_though_demonstrations_go_on():
    way = [6, 1, 2, 3, 4, 5, 6, 6, 6]  # where it is paid it began, so that "done" is an event
    demos = [ar.Episode(way, [0] * 8, np.eye(8)[5]) for _ in range(5)]
    chance = [ar.Episode(way[:6], [0] * 5, np.zeros(5)) for _ in range(40)]
    model = ar.AlignRudder(ar.StateEvents(7, preference=None), strategies=1).fit(demos, chance)
    rewards = model.demonstration(0).rewards
    assert np.argmax(rewards) == 5
    assert last_step_share(model) == pytest.approx(rewards[5] / rewards.sum())


def test_a_redistributed_reward_is_not_said_to_stay(crafting):
    assert 0 < last_step_share(crafting) < 0.9
    assert "stays on the last step" not in crafting.summary()
