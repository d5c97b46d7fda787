"""Key-event detection on KeyChest."""

import numpy as np

from align_rudder.studies import key_chest
from align_rudder.tasks import KeyChestEnv


def test_key_steps_are_where_key_and_chest_change():
    episode = KeyChestEnv().demonstrations(1, seed=0)[0]
    steps = key_chest.key_steps(episode)
    seen = np.asarray(episode.observations)
    assert len(steps) == 2
    assert (seen[steps[0], 1], seen[steps[0] + 1, 1]) == (0, 1)
    assert (seen[steps[1], 2], seen[steps[1] + 1, 2]) == (0, 1)


def test_alignment_points_at_key_and_chest():
    found = key_chest.detect("alignment", 5, seed=123, tests=50)
    assert found.detected > 0.95
    assert found.flagged < 0.25
    assert key_chest.Detection.parse(dict(zip(found.COLUMNS, found.row()))) == found
