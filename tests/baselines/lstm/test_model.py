"""RUDDER (LSTM): it finds known credit, its files come back, and bad input is named."""

import subprocess
import sys

import numpy as np
import pytest
from toys import LEVER, levers, mixed

import align_rudder as ar
from align_rudder.baselines.lstm import LstmRudder

pytest.importorskip("jax")

# What it learns


def test_the_largest_reward_is_where_the_lever_was_met(lever_model):
    found = 0
    held_out = levers(100, 1)[::2]
    for episode in held_out:
        at = int(np.flatnonzero(np.asarray(episode.observations) == LEVER)[0])
        found += int(lever_model.redistribute(episode).rewards.argmax() == at)
    assert found >= 0.95 * len(held_out)


def test_held_out_returns_are_predicted(lever_model):
    held_out = levers(100, 2)
    errors = [lever_model.predict(e)[-1] - e.ret for e in held_out]
    assert np.sqrt(np.mean(np.square(errors))) < 0.2  # 0.5 without looking


def test_prediction_before_the_first_step_is_near_the_mean_return(lever_model):
    episode = levers(1, 3)[0]
    assert lever_model.predict(episode)[0] == pytest.approx(0.5, abs=0.15)


def test_order_of_two_events_is_learned():
    """Only A before B pays: what B is worth depends on what the LSTM remembers."""
    rng = np.random.default_rng(0)

    def episode(order):
        states = rng.integers(0, 3, 11)
        first, second = sorted(rng.choice(10, 2, replace=False))
        states[first], states[second] = (3, 4) if order else (4, 3)
        return ar.Episode(states, rng.integers(0, 2, 10), [0.0] * 9 + [float(order)])

    model = LstmRudder().fit(
        [episode(True) for _ in range(30)], [episode(False) for _ in range(30)]
    )
    right = [model.predict(episode(True))[-1] for _ in range(50)]
    wrong = [model.predict(episode(False))[-1] for _ in range(50)]
    assert np.mean(np.array(right) > 0.5) > 0.9
    assert np.mean(np.array(wrong) < 0.5) > 0.9


def test_without_contrast_it_warns_and_keeps_the_episodic_reward():
    demos = levers(120, 0)[::2]
    with pytest.warns(ar.AlignRudderWarning, match=r"return 1.*random_episodes"):
        model = LstmRudder().fit(demos)
    rr = model.redistribute(demos[0])
    assert not rr.rewards.any()
    assert rr.correction == 1.0


# Files


@pytest.mark.parametrize("kind", ["lake", "mixed"])
def test_a_saved_model_is_the_same(kind, lake_data, lake_model, mixed_model, tmp_path):
    if kind == "lake":
        model, episodes = lake_model, lake_data[1]
    else:
        model, episodes = mixed_model, mixed(4, 5)
    model.save(tmp_path / "lstm.npz")
    again = LstmRudder.load(tmp_path / "lstm.npz")
    assert again.get_params() == model.get_params()
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.losses_, model.losses_)
    for episode in episodes:
        a, b = model.redistribute(episode), again.redistribute(episode)
        assert a.rewards.tolist() == b.rewards.tolist()
        assert a.correction == b.correction
        assert model.predict(episode).tolist() == again.predict(episode).tolist()


def test_files_of_another_kind_and_damaged_ones(model, lake_model, tmp_path):
    model.save(tmp_path / "align.npz")
    with pytest.raises(ValueError, match=r"file of kind 'model'; one of kind 'lstm'"):
        LstmRudder.load(tmp_path / "align.npz")
    lake_model.save(tmp_path / "lstm.npz")
    with pytest.raises(ValueError, match=r"a file of kind 'lstm'; one of kind 'model'"):
        ar.AlignRudder.load(tmp_path / "lstm.npz")
    whole = (tmp_path / "lstm.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read"):
        LstmRudder.load(tmp_path / "half.npz")
    with np.load(tmp_path / "lstm.npz") as file:
        members = {k: file[k] for k in file.files if k != "weights/head"}
    np.savez(tmp_path / "headless.npz", **members)
    with pytest.raises(ValueError, match=r"damaged .* has no array 'weights/head'"):
        LstmRudder.load(tmp_path / "headless.npz")
    with pytest.raises(FileNotFoundError, match="no file"):
        LstmRudder.load(tmp_path / "none.npz")


@pytest.mark.parametrize("name", ["embedding", "bias", "recurrent", "head"])
def test_a_file_whose_arrays_do_not_go_together_is_refused(lake_model, tmp_path, name):
    path = tmp_path / "model.npz"
    lake_model.save(path)
    whole = dict(np.load(path))
    key = f"weights/{name}"
    np.savez(path, **{**whole, key: whole[key][:-1]})
    with pytest.raises(ValueError, match=rf"damaged .* 'weights/{name}' has shape"):
        LstmRudder.load(path)
    np.savez(path, **{**whole, key: whole[key] * np.float32(np.nan)})
    with pytest.raises(ValueError, match=rf"'weights/{name}' holds nan; finite numbers are needed"):
        LstmRudder.load(path)


# Bad input


@pytest.mark.parametrize(
    ("episodes", "random", "message"),
    [
        ([], [], "no episodes were given"),
        (3, [], "list of episodes"),
        ([1, 2], [], "an Episode is needed"),
        ([ar.Episode([[0.0], [np.nan], [1.0]], [0, 1], [0, 1])], [], "NaN"),
        ([ar.Episode(["a", "b"], [0], [1.0])], [], "needs numbers"),
        (
            [ar.Episode([0, 1], [0], [1.0])],
            [ar.Episode([[0, 1], [1, 1]], [0], [0.0])],
            r"of shape \(2,\), ",
        ),
        ([ar.Episode([0, 1], [0], [1.0])], [ar.Episode([0.5, 1.0], [0], [0.0])], "same types"),
        ([ar.Episode([0, 1], [0], [1.0])], [ar.Episode([0, 1], [0.5], [0.0])], "same types"),
    ],
)
def test_bad_episodes(episodes, random, message):
    with pytest.raises(ValueError, match=message):
        LstmRudder(updates=2).fit(episodes, random)


def test_an_episode_of_another_environment_is_refused(lever_model):
    with pytest.raises(ValueError, match="fitted on 1 and 0"):
        lever_model.redistribute(ar.Episode([[0, 1], [1, 1]], [0], [0.0]))
    with pytest.raises(ValueError, match="fitted on 1 and 0"):
        lever_model.redistribute(ar.Episode([0.0, 1.0], [0], [0.0]))
    with pytest.raises(ValueError, match="actions have 0 whole numbers and 1 floats"):
        lever_model.redistribute(ar.Episode([0, 1], [0.5], [0.0]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": 0}, "hidden is 0; "),
        ({"updates": 1.5}, "updates is 1.5; "),
        ({"batch_size": -1}, "batch_size is -1; "),
        ({"learning_rate": np.nan}, "learning_rate is nan; "),
        ({"learning_rate": 1e30}, "diverged with learning_rate=1e"),
        ({"max_steps": 5}, "12 steps, more than max_steps=5"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        LstmRudder(**parameters).fit(levers(60, 0))


def test_not_fitted_and_wrong_numbers_of_seeds(demos):
    for call in (LstmRudder().stream, lambda: LstmRudder().redistribute(demos[0])):
        with pytest.raises(ValueError, match="not fitted"):
            call()
    with pytest.raises(ValueError, match="1 datasets but 2 seeds"):
        LstmRudder().fit_many([(demos, ())], seeds=[1, 2])


def test_without_jax_fitting_names_the_extra_and_a_saved_model_works(lake_model, tmp_path):
    lake_model.save(tmp_path / "lstm.npz")
    episode = ar.Episode([0, 4, 8], [1, 1], [0.0, 0.0])
    expected = lake_model.redistribute(episode).rewards.tolist()
    code = (
        "import sys\n"
        "sys.modules['jax'] = None\n"
        "import align_rudder as ar\n"
        "from align_rudder.baselines.lstm import LstmRudder\n"
        "episode = ar.Episode([0, 4, 8], [1, 1], [0.0, 0.0])\n"
        f"model = LstmRudder.load({str(tmp_path / 'lstm.npz')!r})\n"
        f"assert model.redistribute(episode).rewards.tolist() == {expected!r}\n"
        "try:\n"
        "    LstmRudder().fit([episode])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install '.[jax]'" in done.stdout
