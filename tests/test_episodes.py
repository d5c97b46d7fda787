"""Episode: what is refused and why, parts of episodes, and the npz file."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import Episode, load_episodes, save_episodes
from align_rudder.episodes import select_top, tree_index

examples = settings(deadline=None, max_examples=60, derandomize=True)


def _episode(steps=3, **changes):
    fields = {
        "observations": np.arange(steps + 1),
        "actions": np.arange(steps),
        "rewards": np.ones(steps),
    }
    return Episode(**(fields | changes))


def _assert_same_tree(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            _assert_same_tree(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for part, other in zip(a, b, strict=True):
            _assert_same_tree(part, other)
    else:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def _assert_same(a, b):
    _assert_same_tree(a.observations, b.observations)
    _assert_same_tree(a.actions, b.actions)
    _assert_same_tree(a.rewards, b.rewards)
    assert (a.terminated, a.truncated, a.infos) == (b.terminated, b.truncated, b.infos)


def _through_file(folder, episodes):
    path = folder / "episodes.npz"
    save_episodes(path, episodes)
    return load_episodes(path)


# Trees of arrays of a given length, as Gymnasium spaces of any kind stack to.
_KEYS = st.text("abcXYZ_.- ", min_size=1, max_size=4)


def _array(length, dtype, shape, seed):
    values = np.random.default_rng(seed).integers(0, 200, (length, *shape))
    if dtype == "f8":
        return np.random.default_rng(seed).normal(size=(length, *shape))
    return values.astype(dtype)


def _arrays(length):
    return st.builds(
        _array,
        st.just(length),
        st.sampled_from(["i8", "u1", "f8", "f4", "?", "<U3", "S3"]),
        st.lists(st.integers(0, 3), max_size=2),
        st.integers(0, 99),
    )


def _trees(length):
    dicts = st.dictionaries(_KEYS, _arrays(length), min_size=1, max_size=3)
    return st.one_of(
        _arrays(length),
        dicts,
        st.tuples(_arrays(length) | dicts, dicts),
        st.dictionaries(_KEYS, dicts | st.tuples(_arrays(length), dicts), min_size=1, max_size=2),
    )


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.text(), value, max_size=3),
    max_leaves=5,
)


@st.composite
def _files(draw):
    """Draw episodes of one environment: the same tree, other lengths and values."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    steps = sum(lengths)
    observations = draw(_trees(steps + len(lengths)))
    actions = draw(_trees(steps))
    rewards = np.array(draw(st.lists(st.floats(-9e9, 9e9), min_size=steps, max_size=steps)))
    episodes, at = [], 0
    for i, length in enumerate(lengths):
        info = st.dictionaries(st.text(), _JSON, max_size=2)
        infos = draw(st.none() | st.lists(info, min_size=length, max_size=length))
        episodes.append(
            Episode(
                tree_index(observations, np.s_[at + i : at + i + length + 1]),
                tree_index(actions, np.s_[at : at + length]),
                rewards[at : at + length],
                draw(st.booleans()),
                draw(st.booleans()),
                infos,
            )
        )
        at += length
    return episodes


# Validation


def test_return_is_the_sum_of_the_rewards():
    episode = _episode(rewards=[1, 2.5, -4])
    assert episode.ret == -0.5
    assert episode.rewards.dtype == np.float64
    assert repr(episode) == "Episode(3 steps, return -0.5, terminated)"
    assert "truncated" in repr(_episode(terminated=False, truncated=True))
    assert "unfinished" in repr(_episode(terminated=False))


def test_rewards_are_a_copy_that_cannot_be_written():
    given_rewards = np.ones(3)
    episode = _episode(rewards=given_rewards)
    given_rewards[:] = 7.0
    assert episode.ret == 3.0
    with pytest.raises(ValueError, match="read-only"):
        episode.rewards[0] = 2.0


@given(st.integers(1, 6), st.integers(0, 9), st.integers(0, 9))
@examples
def test_lengths_must_be_those_of_the_rewards(steps, n_observations, n_actions):
    fields = {
        "observations": np.zeros((n_observations, 2)),
        "actions": np.zeros(n_actions),
        "rewards": np.zeros(steps),
    }
    if n_observations == n_actions + 1 != steps + 1:
        with pytest.raises(ValueError, match=rf"rewards .*{steps}.*{n_actions}"):
            Episode(**fields)
    elif n_observations != steps + 1:
        with pytest.raises(ValueError, match=rf"observations .*{n_observations}.*{steps + 1}"):
            Episode(**fields)
    elif n_actions != steps:
        with pytest.raises(ValueError, match=rf"actions .*{n_actions}.*{steps}"):
            Episode(**fields)
    else:
        assert len(Episode(**fields)) == steps


def test_a_wrong_length_deep_in_a_tree_is_named():
    tree = {"view": (np.zeros(4), {"map": np.zeros((3, 2))})}
    with pytest.raises(ValueError, match=r"observations\['view'\]\[1\]\['map'\] has length 3.* 4"):
        _episode(observations=tree)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rewards_must_be_finite(value):
    with pytest.raises(ValueError, match=rf"rewards\[1\] is {value}.*finite"):
        _episode(rewards=[0.0, value, 1.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": [0], "actions": [], "rewards": []}, "no steps; at least one"),
        ({"rewards": [[1.0], [2.0], [3.0]]}, r"shape \(3, 1\); one number for each step"),
        ({"rewards": 1.0}, r"shape \(\)"),
        ({"rewards": ["a", "b", "c"]}, "rewards must be numbers"),
        ({"rewards": ["1", "2", "3"]}, "rewards must be numbers.*text"),
        ({"rewards": [1j, 2.0, 3.0]}, "rewards must be numbers.*complex"),
        ({"rewards": [[1.0], 2.0, 3.0]}, "rewards must be numbers"),
        ({"observations": [[0], [1, 2], [3], [4]]}, "observations is ragged.*different shapes"),
        ({"actions": [[0], [1, 2], [3]]}, "actions is ragged"),
        ({"observations": 5}, r"single value \(5\); a sequence over time"),
        ({"actions": [None, 1, 2]}, "actions has elements of type NoneType; numbers or strings"),
        ({"observations": [{1}, {2}, {3}, {4}]}, "elements of type set"),
        ({"observations": np.array([], object)}, "observations"),
        ({"observations": [{"a": 1}, {"b": 1}, {"a": 1}, {"a": 1}]}, "different keys.*'a'"),
        ({"observations": [{"a": 1}, 2, 3, 4]}, "different keys"),
        ({"observations": {"a": [[0], [1, 2], [3], [4]]}}, r"observations\['a'\] is ragged"),
        ({"infos": [{}, {}]}, "infos has length 2, needed are 3"),
        ({"rewards": [0.0, 1.0]}, "rewards has length 2, needed are 3: one for each action"),
        ({"actions": [0, 1]}, "actions has length 2, needed are 3"),
    ],
)
def test_bad_input_is_explained(changes, message):
    with pytest.raises(ValueError, match=message):
        _episode(**changes)


@pytest.mark.parametrize("infos", [[1, 2, 3], [None, {}, {}], ["ab", "cd", "ef"]])
def test_infos_must_be_dicts(infos):
    with pytest.raises(ValueError, match="infos"):
        _episode(infos=infos)


@pytest.mark.parametrize("tree", [{}, {"a": {}}, {"a": np.arange(4), "b": {}}])
def test_an_observation_without_content_is_refused(tree):
    with pytest.raises(ValueError, match="observations"):
        _episode(observations=tree)


def test_numbers_and_strings_are_not_mixed_silently():
    with pytest.raises(ValueError, match="observations"):
        _episode(observations=[0, "door", 2, 3])


def test_keys_that_have_the_same_name_are_refused():
    with pytest.raises(ValueError, match="observations"):
        _episode(observations={1: np.arange(4), "1": np.arange(4) + 1})


_DICTS = st.recursive(
    _arrays(5), lambda part: st.dictionaries(_KEYS, part, min_size=1, max_size=3), max_leaves=5
)


@given(st.dictionaries(_KEYS, _DICTS, min_size=1, max_size=3))
@examples
def test_a_list_of_dicts_is_the_dict_of_lists(tree):
    listed = [tree_index(tree, t) for t in range(5)]

    def plain(part):
        if isinstance(part, dict):
            return {key: plain(value) for key, value in part.items()}
        return part.dtype.kind, part.shape, part.tolist()

    assert plain(_episode(4, observations=listed).observations) == plain(tree)


def test_dicts_of_lists_become_dicts_of_arrays():
    episode = _episode(observations={"log": [0, 1, 1, 2], "at": [[0, 0], [0, 1], [1, 1], [1, 2]]})
    _assert_same_tree(
        episode.observations,
        {"log": np.array([0, 1, 1, 2]), "at": np.array([[0, 0], [0, 1], [1, 1], [1, 2]])},
    )


def test_a_tuple_of_arrays_is_a_tuple_of_parts():
    parts = (np.arange(4), np.zeros((4, 2)), {"a": np.ones(4)})
    _assert_same_tree(_episode(observations=parts).observations, parts)


def test_a_tuple_may_begin_with_a_tuple():
    parts = ((np.arange(4), np.zeros((4, 2))), np.ones(4))
    _assert_same_tree(_episode(observations=parts).observations, parts)


def test_a_list_of_tuple_observations_is_a_tuple_of_arrays():
    listed = [(t, np.array([t, t + 0.5])) for t in range(4)]
    _assert_same_tree(
        _episode(observations=listed).observations,
        (np.arange(4), np.array([[t, t + 0.5] for t in range(4)])),
    )


# Slices


@given(_files(), st.data())
@examples
def test_slice_holds_the_same_steps(episodes, data):
    episode = episodes[0]
    stop = data.draw(st.integers(1, len(episode)))
    start = data.draw(st.integers(0, stop - 1))
    part = episode.slice(start, stop)
    last = stop == len(episode)
    assert (part.terminated, part.truncated) == (
        episode.terminated and last,
        episode.truncated and last,
    )
    assert part.ret == episode.rewards[start:stop].sum()
    for i, t in enumerate(range(start, stop)):
        for k in (0, 1):
            _assert_same_tree(
                tree_index(part.observations, np.s_[i + k : i + k + 1]),
                tree_index(episode.observations, np.s_[t + k : t + k + 1]),
            )
        _assert_same_tree(
            tree_index(part.actions, np.s_[i : i + 1]),
            tree_index(episode.actions, np.s_[t : t + 1]),
        )
        assert episode.infos is None or part.infos[i] == episode.infos[t]


def test_slice_by_hand():
    infos = [{"t": t} for t in range(5)]
    part = _episode(5, rewards=[1, 2, 4, 8, 16], infos=infos).slice(1, 4)
    _assert_same(
        part,
        Episode([1, 2, 3, 4], [1, 2, 3], [2, 4, 8], False, False, [{"t": 1}, {"t": 2}, {"t": 3}]),
    )


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 2), (2, 1), (0, 4), (3, 4)])
def test_slice_outside_the_episode_is_refused(start, stop):
    with pytest.raises(ValueError, match=rf"{start}:{stop} are not a part .* 3 steps"):
        _episode(3).slice(start, stop)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=7), st.data())
@examples
def test_the_top_are_those_of_highest_return_then_shortest(pairs, data):
    returns, lengths = zip(*pairs, strict=True)
    n = data.draw(st.none() | st.integers(0, 8))
    chosen = select_top(returns, lengths, n).tolist()
    assert chosen == sorted(chosen)
    best = sorted((-g, length, i) for i, (g, length) in enumerate(pairs))
    assert set(chosen) == {i for _, _, i in best[: len(pairs) if n is None else n]}


# Files


@given(_files())
@examples
def test_what_was_saved_is_loaded(tmp_path_factory, episodes):
    loaded = _through_file(tmp_path_factory.mktemp("episodes"), episodes)
    assert len(loaded) == len(episodes)
    for a, b in zip(episodes, loaded, strict=True):
        _assert_same(a, b)


def test_the_same_episodes_give_the_same_file_content(tmp_path):
    episodes = [_episode(3, infos=[{"b": 1, "a": 2}] * 3), _episode(2)]
    for name in ("one.npz", "two.npz"):
        save_episodes(tmp_path / name, episodes)
    with np.load(tmp_path / "one.npz") as one, np.load(tmp_path / "two.npz") as two:
        assert one.files == two.files
        for name in one.files:
            _assert_same_tree(one[name], two[name])


def test_numpy_values_in_infos_come_back_as_plain_values(tmp_path):
    infos = [{"x": np.float32(0.5), "n": np.int64(3), "v": np.arange(2), "b": np.bool_(True)}]
    (loaded,) = _through_file(tmp_path, [_episode(1, infos=infos)])
    assert loaded.infos == [{"x": 0.5, "n": 3, "v": [0, 1], "b": True}]


def test_a_tuple_of_many_parts_keeps_its_order(tmp_path):
    parts = tuple(np.full(4, i) for i in range(12))
    (loaded,) = _through_file(tmp_path, [_episode(3, observations=parts)])
    _assert_same_tree(loaded.observations, parts)


@pytest.mark.parametrize("key", ["a/b", "/", "(0)", "(x)", "(", ""])
def test_every_key_survives_the_file(tmp_path, key):
    """Or it is refused when it is saved, never changed."""
    episode = _episode(observations={key: np.arange(4)})
    try:
        save_episodes(tmp_path / "e.npz", [episode])
    except ValueError as error:
        assert repr(key) in str(error)  # noqa: PT017
    else:
        _assert_same(load_episodes(tmp_path / "e.npz")[0], episode)


def test_a_key_is_not_taken_for_a_path(tmp_path):
    episode = _episode(observations={"a": np.arange(4), "a/b": np.arange(4) + 1})
    try:
        save_episodes(tmp_path / "e.npz", [episode])
    except ValueError as error:
        assert "a/b" in str(error)  # noqa: PT017
    else:
        _assert_same(load_episodes(tmp_path / "e.npz")[0], episode)


@pytest.mark.parametrize(
    "other",
    [
        _episode(observations=np.zeros((4, 2))),
        _episode(observations={"a": np.arange(4)}),
        _episode(actions=np.zeros((3, 1))),
        _episode(actions=(np.zeros(3), np.zeros(3))),
    ],
)
def test_episodes_of_two_environments_do_not_share_a_file(tmp_path, other):
    with pytest.raises(ValueError, match="episode 1 has other observations or actions"):
        save_episodes(tmp_path / "e.npz", [_episode(), other])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.arange(4), np.array(list("abcd"))),
        (np.array([0, 1, 2, 2**62 + 1]), np.arange(4, dtype=np.uint64)),
    ],
)
def test_values_are_not_changed_by_the_neighbours_type(tmp_path, first, second):
    episodes = [_episode(observations=first), _episode(observations=second)]
    try:
        loaded = _through_file(tmp_path, episodes)
    except ValueError as error:
        assert "episode 1" in str(error)  # noqa: PT017
    else:
        for a, b in zip(episodes, loaded, strict=True):
            assert a.observations.tolist() == b.observations.tolist()


def test_nothing_to_save_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no episodes to save"):
        save_episodes(tmp_path / "e.npz", [])


def test_what_is_saved_and_where_cannot_be_mixed_up(tmp_path):
    episode = Episode([0, 1], [0], [1.0])
    with pytest.raises(ValueError, match=r"path is a list; .*: save_episodes\(path, episodes\)"):
        save_episodes([episode], tmp_path / "e.npz")
    for one in (episode, None):
        with pytest.raises(ValueError, match=r"episodes is .*; a list of them is needed"):
            save_episodes(tmp_path / "e.npz", one)
    with pytest.raises(ValueError, match=r"episodes\[1\] is a str; an Episode is needed"):
        save_episodes(tmp_path / "e.npz", [episode, "x"])


@pytest.mark.parametrize("info", [{"x": object()}, {"x": {1, 2}}, {"x": 1j}, {(1, 2): 0}])
def test_infos_that_json_cannot_hold_are_refused(tmp_path, info):
    with pytest.raises(ValueError, match="infos"):
        save_episodes(tmp_path / "e.npz", [_episode(1, infos=[info])])
    assert not (tmp_path / "e.npz").exists()


def test_a_file_of_plain_arrays_is_read(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(
        path,
        observations=np.arange(7) * 10,
        actions=np.arange(5),
        rewards=[0, 0, 1, 0, 2],
        lengths=[3, 2],
    )
    first, second = load_episodes(path)
    _assert_same(first, Episode([0, 10, 20, 30], [0, 1, 2], [0, 0, 1]))
    _assert_same(second, Episode([40, 50, 60], [3, 4], [0, 2]))


def test_a_file_of_plain_arrays_may_hold_a_dict_and_ends(tmp_path):
    path = tmp_path / "own.npz"
    arrays = {"observations/log": np.arange(7), "observations/at": np.zeros((7, 2))}
    np.savez(
        path,
        **arrays,
        actions=np.arange(5),
        rewards=np.zeros(5),
        lengths=[3, 2],
        terminated=[False, True],
        truncated=[True, False],
    )
    first, second = load_episodes(path)
    assert [(e.terminated, e.truncated) for e in (first, second)] == [(False, True), (True, False)]
    _assert_same_tree(first.observations, {"log": np.arange(4), "at": np.zeros((4, 2))})
    _assert_same_tree(second.observations, {"log": np.arange(4, 7), "at": np.zeros((3, 2))})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": None}, "no 'lengths'; .* this one .*'rewards'"),
        ({"rewards": None}, "no 'rewards'"),
        ({"observations": None}, "no 'observations'; it has .*'actions'"),
        ({"actions": None}, "no 'actions'"),
        ({"lengths": [3, 3]}, "rewards has length 5, needed are 6: lengths add up to 6 steps in 2"),
        ({"lengths": [5]}, "observations has length 7, needed are 6"),
        ({"lengths": [6, -1]}, "lengths must be positive, got -1"),
        ({"lengths": [5, 0]}, "lengths must be positive, got 0"),
        ({"lengths": [3.7, 2.2]}, "lengths"),
        ({"actions": np.zeros(4)}, "actions has length 4, needed are 5"),
        ({"terminated": [True] * 3}, "terminated"),
        ({"truncated": [True] * 3}, "truncated"),
        ({"rewards": [0, 0, np.nan, 0, 0]}, r"rewards\[2\] is nan"),
    ],
)
def test_a_wrong_file_of_plain_arrays_is_explained(tmp_path, changes, message):
    arrays = {
        "observations": np.arange(7),
        "actions": np.zeros(5),
        "rewards": np.zeros(5),
        "lengths": [3, 2],
    }
    arrays = {k: v for k, v in (arrays | changes).items() if v is not None}
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_episodes(tmp_path / "own.npz")


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "whole.npz"
    tree = {"at": np.arange(8.0).reshape(4, 2), "name": np.array(list("abcd"))}
    save_episodes(path, [_episode(3, observations=tree, infos=[{"lives": 3}] * 3)])
    return path.read_bytes()


@given(st.data())
@examples
def test_a_truncated_file_is_refused(tmp_path_factory, whole_file, data):
    path = tmp_path_factory.mktemp("cut") / "cut.npz"
    path.write_bytes(whole_file[: data.draw(st.integers(0, len(whole_file) - 1))])
    with pytest.raises(ValueError, match=r"cut\.npz cannot be read .*truncated, damaged"):
        load_episodes(path)


def test_a_file_with_a_damaged_table_of_contents_is_read_or_refused(tmp_path, whole_file):
    path = tmp_path / "damaged.npz"
    path.write_bytes(whole_file)
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    first_entry_and_end = [*range(start, start + 60), *range(len(whole_file) - 22, len(whole_file))]
    escaped = {}
    for at in first_entry_and_end:
        for bit in range(8):
            damaged = bytearray(whole_file)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                load_episodes(path)
            except ValueError:
                continue
            except Exception as error:
                escaped[type(error).__name__] = (at - start, bit, str(error))
    assert not escaped


def test_another_format_or_version_is_refused(tmp_path, whole_file):
    path = tmp_path / "other.npz"
    path.write_bytes(whole_file)
    with np.load(path) as file:
        arrays = dict(file)
    for change, message in [
        ({"format": "align-rudder-model"}, "is a file of kind 'model'; one of kind 'episodes'"),
        ({"version": 99}, "version 99 .* reads version 1"),
    ]:
        header = json.loads(arrays["header"].tobytes()) | change
        text = json.dumps(header).encode()
        np.savez(path, **(arrays | {"header": np.frombuffer(text, np.uint8)}))
        with pytest.raises(ValueError, match=message):
            load_episodes(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive at all", b"\x80\x04N."])
def test_another_kind_of_file_is_refused(tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as an npz file"):
        load_episodes(path)


def test_a_single_array_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(ValueError, match="single array"):
        load_episodes(tmp_path / "x.npy")


@pytest.mark.parametrize("member", ["header", "rewards", "lengths", "infos"])
def test_a_member_that_is_no_array_is_refused(tmp_path, member):
    path = tmp_path / "x.npz"
    np.savez(
        path,
        observations=np.arange(4),
        actions=np.arange(3),
        **{k: v for k, v in {"rewards": [0, 0, 1], "lengths": [3]}.items() if k != member},
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, "hello")
    with pytest.raises(ValueError, match=r"x\.npz"):
        load_episodes(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.npz"):
        load_episodes(tmp_path / "nowhere.npz")


def test_a_file_of_no_episodes_says_so(tmp_path):
    path = tmp_path / "none.npz"
    np.savez(path, observations=[], actions=[], rewards=[], lengths=[])
    with pytest.raises(ValueError, match=r"none.npz.* lengths is empty, so it holds no episodes"):
        load_episodes(path)
    np.savez(path, observations=np.zeros(3), actions=[0, 0], rewards=[0, 1], lengths=[2, 0])
    with pytest.raises(ValueError, match=r"entry of lengths must be positive, got 0"):
        load_episodes(path)
