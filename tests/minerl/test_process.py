"""The process that runs a MineRL environment: how it starts, fails and ends."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from small_world import act, play, same

from align_rudder.minerl.environment import MineRLEnv, MineRLServerError
from align_rudder.minerl.process import PYTHON_VARIABLE, has_minerl
from align_rudder.minerl.testing import scripted

WAIT = 60  # seconds; only a failing test takes so long


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid):
    deadline = time.monotonic() + WAIT
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def test_what_is_printed_does_no_harm(make, trick, shared):
    env, plain = make(trick=trick("noise")), shared[3]
    one, other = (play(e, 4, 5) for e in (env, plain))
    assert all(same(a, b) for a, b in zip(one[0], other[0]))


def test_killed_server(make):
    env = make()
    env.reset(seed=0)
    process = env._server.process
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(MineRLServerError, match=r"exit code -9(.|\n)*reset\(\)"):
        env.step(act())
    assert process.returncode == -signal.SIGKILL  # waited for: no zombie
    with pytest.raises(RuntimeError, match="no running episode"):
        env.step(act())
    env.reset(seed=0)  # starts a new one
    env.step(act())


@pytest.mark.parametrize("name", ["crash", "fork"])
def test_crash(make, trick, name):
    env = make(trick=trick(name))
    env.reset(seed=0)
    start = time.monotonic()
    with pytest.raises(MineRLServerError, match="exit code 3") as caught:
        env.step(act())
    assert time.monotonic() - start < 5
    assert ("Minecraft is on fire" in str(caught.value)) == (name == "crash")


def test_hanging_server(make, trick):
    env = make(trick=trick("hang"))
    env.reset(seed=0)
    env.timeout, pid = 0.5, env._server.process.pid
    with pytest.raises(MineRLServerError, match=r"more than 0\.5 s to step"):
        env.step(act())
    assert not is_running(pid)


def test_errors_of_the_environment(make, trick):
    env = make(trick=trick("raise"))
    env.reset(seed=0)
    with pytest.raises(MineRLServerError, match="ConnectionError: no such block"):
        env.step(act())
    env.reset(seed=0)  # the one that raised would raise for ever
    with pytest.raises(MineRLServerError, match="no Java here"):
        make(trick=trick("cannot"))


def test_a_game_that_died_between_two_episodes_is_started_anew(make, trick):
    env = make(trick=trick("one"))
    pids = []
    for seed in range(3):
        env.reset(seed=seed)
        env.step(act())
        pids.append(env._server.process.pid)
    assert len(set(pids)) == 3
    assert not any(is_running(pid) for pid in pids[:2])


@pytest.mark.parametrize("name", ["garbage", "half", "zero", "words", "keys", "picture"])
def test_garbage_is_a_crash(make, trick, name):
    """Also where a message is begun and never ended, and the process lives on."""
    env = make(trick=trick(name))
    env.reset(seed=0)
    env.timeout, pid = 5.0 if name != "half" else 0.5, env._server.process.pid
    said = "more than 0.5 s" if name == "half" else "sent garbage in answer to step"
    with pytest.raises(MineRLServerError, match=said):
        env.step(act())
    assert not is_running(pid)
    env.reset(seed=0)


def test_the_server_dies_with_its_parent(trick):
    """Also while the environment hangs."""
    code = """
        import sys
        from align_rudder.minerl.environment import MineRLEnv
        from align_rudder.minerl.testing.scripted import scripted_action
        waiting = MineRLEnv(module="scripted")
        hanging = MineRLEnv(module=sys.argv[1], module_options={"trick": "hang"})
        observation, _ = hanging.reset(seed=0)
        print(waiting.description["pid"], hanging.description["pid"], flush=True)
        hanging.step(scripted_action(observation))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), trick("hang").module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        time.sleep(0.5)  # until it hangs
        parent.kill()
    assert all(gone(pid) for pid in pids)


def test_closing():
    env = MineRLEnv(module="scripted")
    process = env._server.process
    env.close()
    env.close()
    assert process.returncode == 0
    for call in (env.reset, lambda: env.step(act())):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    forgotten = MineRLEnv(module="scripted")
    process = forgotten._server.process
    del forgotten
    gc.collect()
    assert process.returncode == 0


def test_a_wrapper_around_the_interpreter(make):
    """As xvfb-run: a shell between us and the server, which is killed in place of it."""
    env = make(python=["sh", "-c", '"$@"; true', "sh", sys.executable])
    process, pid = env._server.process, env.description["pid"]
    assert process.pid != pid
    env.reset(seed=0)
    process.kill()
    process.wait()
    with pytest.raises(MineRLServerError, match="exit code -9"):
        env.step(act())
    assert gone(pid)


def test_missing_interpreter(monkeypatch):
    with pytest.raises(ValueError, match="no such program") as caught:
        MineRLEnv(python="/nowhere/python3.7")
    assert "minerl==0.3.7" in str(caught.value)
    monkeypatch.setenv(PYTHON_VARIABLE, "/nowhere/python3.7 -u")
    with pytest.raises(ValueError, match=f"{PYTHON_VARIABLE}='/nowhere/python3.7 -u'"):
        MineRLEnv()


@pytest.mark.skipif(has_minerl(), reason="minerl is there")
def test_missing_minerl(monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    for python in (None, sys.executable):
        with pytest.raises(ImportError, match="minerl") as caught:
            MineRLEnv(python=python)
        for part in ("Java 8", "minerl==0.3.7", "3.6 to 3.8", PYTHON_VARIABLE):
            assert part in str(caught.value)


def test_an_interpreter_that_has_minerl(monkeypatch, tmp_path):
    """Stands for the real ones as far as importing and making goes."""
    (tmp_path / "minerl.py").write_text("")
    (tmp_path / "gym.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(scripted.__file__).parent)!r})\n"
        "import scripted\nmake = scripted.make\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(PYTHON_VARIABLE, f"env {sys.executable} -u")
    with MineRLEnv() as env:
        assert env.reset(seed=0)[0]["pov"].shape == (64, 64, 3)
    with pytest.raises(ValueError, match="need a module"):
        MineRLEnv(module_options={"stage": "iron"})
