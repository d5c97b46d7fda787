"""The real client code of minerl, with only the Java process replaced by a stand-in (`malmo.py`).

It needs an old Python with minerl's client, which is no part of the development environment:
`tools/minerl_client.py` makes one; name it in ALIGN_RUDDER_MINERL_CLIENT.
"""

import os
from pathlib import Path

import malmo
import pytest
from small_world import act, play, same

from align_rudder.minerl.crashes import CrashRecovery, Restarts
from align_rudder.minerl.environment import MineRLEnv, MineRLServerError
from align_rudder.minerl.testing import scripted

CLIENT = os.environ.get("ALIGN_RUDDER_MINERL_CLIENT", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CLIENT,
        reason="no interpreter with minerl's client: python tools/minerl_client.py makes one; set "
        "ALIGN_RUDDER_MINERL_CLIENT to it",
    ),
]


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make environments whose Minecraft ends as is planned."""
    made = []

    def make(*plan):
        folder = tmp_path / str(len(made))
        malmo.install(folder, CLIENT)
        (folder / "plan").write_text("\n".join(plan))
        monkeypatch.setenv("STAND_IN", str(folder))
        monkeypatch.setenv("STAND_IN_WORLD", scripted.__file__)
        monkeypatch.setenv("MALMO_MINECRAFT_OUTPUT_LOGDIR", str(folder))
        made.append(
            MineRLEnv(
                python=CLIENT, module=f"{Path(malmo.__file__)}:make", step_timeout=5, reward="all"
            )
        )
        return made[-1]

    yield make
    for env in made:
        env.close()


def episode(env):
    """Return what is seen and paid in 40 steps of one who knows the tool chain."""
    observations, _, rewards, *_ = play(env, 3, 40)
    return observations, rewards


def alike(one, other):
    (seen, paid), (seen_too, paid_too) = one, other
    return paid == paid_too and all(same(a, b) for a, b in zip(seen, seen_too, strict=True))


def test_the_real_client_is_spoken_to(make):
    env = make()
    found = episode(env)
    assert alike(found, episode(env))
    with MineRLEnv(module="scripted", module_options=malmo.WORLD, reward="all") as plain:
        assert alike(found, episode(plain))  # as though no Minecraft were between
    assert sum(found[1]) >= 7  # a log, planks, sticks
    assert env.description["gym"] is not None


def test_after_minecraft_died_reset_starts_it_anew(make):
    env = make("die 4")
    # 0.3.7 raises, 0.4.4 returns a random observation and says so in its info.
    with pytest.raises(
        MineRLServerError, match=r"(during step|lost Minecraft)(.|\n)*[Cc]all reset"
    ):
        episode(env)
    env.reset(seed=3)
    env.step(act())


@pytest.mark.parametrize("plan", [["die 7"], ["hang 7"], ["garbage 7"], ["die 7", "die 3"]])
def test_a_crash_of_minecraft_is_a_pause(make, plan):
    wanted = episode(make())
    env = CrashRecovery(make(*plan), Restarts(first=0))
    assert alike(episode(env), wanted)
    assert env.crashes == len(plan)
    assert env.steps == 40
    assert env.lost == 0
