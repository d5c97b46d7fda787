"""Inputs of the LSTM: categories are looked up, numbers standardised."""

import numpy as np
from toys import mixed

import align_rudder as ar
from align_rudder.baselines.lstm import StepInputs
from align_rudder.baselines.lstm.inputs import UNSEEN


def test_a_discrete_observation_and_action_are_one_input():
    episodes = [ar.Episode([3, 5, 3, 9], [0, 1, 0], [0, 0, 1.0])]
    inputs = StepInputs().fit(episodes)
    rows = inputs.pair_rows(10, 3)
    assert sorted(rows[rows != UNSEEN].tolist()) == [1, 2]
    assert rows[3, 0] != UNSEEN != rows[5, 1]
    assert rows[3, 1] == rows[9, 0] == rows[0, 2] == UNSEEN
    assert inputs.encode_episode(episodes[0])[0][:, 0].tolist() == [
        rows[3, 0],
        rows[5, 1],
        rows[3, 0],
    ]


def test_floats_are_standardised_and_whole_numbers_looked_up():
    episodes = mixed(20, 0)
    inputs = StepInputs().fit(episodes)
    assert (inputs.n_tokens, inputs.n_numbers) == (2, 5)
    numbers = np.concatenate([inputs.encode_episode(e)[1] for e in episodes])
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(numbers.std(axis=0), 1, atol=1e-5)
    tokens = np.concatenate([inputs.encode_episode(e)[0] for e in episodes])
    assert set(tokens.ravel()) == set(range(1, inputs.n_rows))


def test_unseen_steps_say_the_same_whatever_they_are(lever_model):
    a = ar.Episode([50, 60, 70], [0, 1], [0.0, 0.0])
    b = ar.Episode([80, 90, 99], [1, 0], [0.0, 0.0])
    assert lever_model.predict(a).tolist() == lever_model.predict(b).tolist()
