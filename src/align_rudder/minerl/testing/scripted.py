"""A small environment with the spaces of MineRL and a tool chain of its own; no Minecraft.

The player stands in a round clearing. Around it, on a circle, stand trees, rocks, ores and the
diamond, each in one flat colour; which stands where depends on the seed. What is in the middle of
the picture and within reach is worked on by `attack`; recipes are close to Minecraft's.

Spaces and types are those of minerl 0.3.7 (`version=3`, flat names) and 0.4.4 (`version=4`,
nested), behind the interface of old gym. `server.py` starts it like minerl itself, so this file
needs the standard library and NumPy only, runs on Python 3.6, and has the names of `spaces` once
more: here they are what the other side declares. `scripted_action` obtains the diamond, by what it
sees only.
"""

import collections
import math
import time
from typing import Any

import numpy as np

__all__ = ["COLORS", "STAGES", "ScriptedEnv", "make", "scripted_action"]

BUTTONS = ("forward", "back", "left", "right", "jump", "sneak", "sprint", "attack")
TOOLS = (
    "wooden_axe",
    "wooden_pickaxe",
    "stone_axe",
    "stone_pickaxe",
    "iron_axe",
    "iron_pickaxe",
)
PICKAXES = TOOLS[1::2]
BLOCKS = ("dirt", "stone", "cobblestone", "crafting_table", "furnace", "torch")
ITEMS = (*BLOCKS, *TOOLS, "coal", "log", "planks", "stick", "iron_ore", "iron_ingot")
DECLARED = {
    "place": ("none", *BLOCKS),
    "equip": ("none", "air", *TOOLS),
    "craft": ("none", "torch", "stick", "planks", "crafting_table"),
    "nearbyCraft": ("none", *TOOLS, "furnace"),
    "nearbySmelt": ("none", "iron_ingot", "coal"),
}
HELD = ("none", "air", *TOOLS, "other")
REWARDS = {
    "log": 1,
    "planks": 2,
    "stick": 4,
    "crafting_table": 4,
    "wooden_pickaxe": 8,
    "cobblestone": 16,
    "stone_pickaxe": 32,
    "iron_ore": 64,
    "furnace": 32,
    "iron_ingot": 128,
    "iron_pickaxe": 256,
    "diamond": 1024,
}
"""What is paid for the first of each item, in the order in which they are first had."""
LIMITS = {
    "MineRLObtainDiamond-v0": 18000,
    "MineRLObtainIronPickaxe-v0": 6000,
    "MineRLTreechop-v0": 8000,
}

RECIPES = {
    "planks": ({"log": 1}, 4, None),
    "stick": ({"planks": 2}, 4, None),
    "crafting_table": ({"planks": 4}, 1, None),
    "torch": ({"stick": 1, "coal": 1}, 4, None),
    "wooden_axe": ({"stick": 2, "planks": 3}, 1, "crafting_table"),
    "wooden_pickaxe": ({"stick": 2, "planks": 3}, 1, "crafting_table"),
    "stone_axe": ({"stick": 2, "cobblestone": 3}, 1, "crafting_table"),
    "stone_pickaxe": ({"stick": 2, "cobblestone": 3}, 1, "crafting_table"),
    "furnace": ({"cobblestone": 8}, 1, "crafting_table"),
    "iron_axe": ({"stick": 2, "iron_ingot": 3}, 1, "crafting_table"),
    "iron_pickaxe": ({"stick": 2, "iron_ingot": 3}, 1, "crafting_table"),
    "iron_ingot": ({"iron_ore": 1, "coal": 1}, 1, "furnace"),
    "coal": ({"log": 1, "planks": 1}, 1, "furnace"),
}
"""What is used, how many are made, and the block that must be near."""

SOURCES = {
    "tree": ("log", 6, ()),
    "stone": ("cobblestone", 16, PICKAXES),
    "dirt": ("dirt", 8, ()),
    "coal_ore": ("coal", 4, PICKAXES),
    "iron_ore": ("iron_ore", 4, PICKAXES[1:]),
    "diamond_ore": ("diamond", 1, PICKAXES[2:]),
}
"""What stands around: the item it gives, how many, and the tools of which one must be held."""
STANDING = ("tree", "tree", "stone", "stone", "dirt", "coal_ore", "iron_ore", "diamond_ore")
COLORS = {
    "sky": (140, 180, 240),
    "ground": (110, 160, 70),
    "tree": (100, 60, 20),
    "stone": (130, 130, 130),
    "dirt": (150, 100, 60),
    "coal_ore": (30, 30, 30),
    "iron_ore": (220, 170, 130),
    "diamond_ore": (60, 230, 220),
    "crafting_table": (200, 140, 40),
    "furnace": (80, 80, 90),
    "cobblestone": (170, 170, 170),
    "torch": (250, 220, 60),
}
COLORS["block of stone"] = (150, 150, 160)
COLORS["block of dirt"] = (130, 85, 50)

STAGES = {
    "start": {},
    "wood": {"log": 6},
    "stone": {"log": 2, "stick": 6, "crafting_table": 1, "wooden_pickaxe": 1},
    "iron": {"stick": 4, "crafting_table": 1, "cobblestone": 8, "coal": 3, "stone_pickaxe": 1},
    "diamond": {"iron_pickaxe": 1},
}
"""What the player begins with. For these items nothing is paid any more."""
DURABILITY = {"wooden": 59, "stone": 131, "iron": 250}

REACH, NEAR, ARENA, RADIUS = 0.4, 0.5, 0.75, 0.08
"""Of the circle's radius: how far attack reaches, what is near, where one can go, and the half
width of what is drawn."""
FIELD, SIZE = 70.0, 64
ANGLE = FIELD / SIZE
"""Degrees that a column of the picture shows."""

Spec = collections.namedtuple("Spec", "id max_episode_steps")


class Box:
    """Numbers between bounds, as gym's."""

    def __init__(self, low, high, shape, dtype):
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)
        self.shape, self.dtype = shape, np.dtype(dtype)


class Discrete:
    """Numbers from 0 to n - 1, as gym's."""

    def __init__(self, n):
        self.n = n


class Enum(Discrete):
    """Names, sorted, as minerl's."""

    def __init__(self, *values):
        super().__init__(len(values))
        self.values = np.array(sorted(values))


class Dict:
    """Named spaces, as gym's."""

    def __init__(self, spaces):
        self.spaces = collections.OrderedDict(spaces)


def towards(bearing):
    """Return the unit vector of a bearing in degrees, as a complex number (right, ahead)."""
    return complex(math.sin(math.radians(bearing)), math.cos(math.radians(bearing)))


class Thing:
    """What stands on the circle (height 1), or was put down; its place is a complex number."""

    def __init__(self, kind, place, left, height):
        self.kind, self.place, self.left, self.height = kind, place, left, height


class ScriptedEnv:
    """The clearing, behind the interface of old gym.

    The same seed and actions give the same observations. The camera turns the view; forward, back,
    left and right move, sprint and sneak change how far. What was put down stays, hides nothing and
    does not stand in the way. Tools wear off with each item that they give.

    Args:
        task: Name of one of the tasks; in Treechop trees give logs without end, until 64.
        version: 3 for the spaces of minerl 0.3.7, 4 for those of 0.4.4.
        stage: What the player begins with, a name in `STAGES`.
        distance: Steps from the middle of the clearing until something is in reach.
        spread: Degrees over which things are spread, the middle ahead; 90 to 360.
        hits: Steps of `attack` that each item takes.
        drift: Degrees by which the view is turned at each step, whatever the player does: normally
            distributed with this deviation, and the same for the same world.
        delay: Seconds that a step takes, as real games do not compute one in no time.
        limit: Steps after which an episode ends; the task's if None.
    """

    def __init__(
        self,
        task: str = "MineRLObtainDiamond-v0",
        version: int = 3,
        stage: str = "start",
        distance: float = 4,
        spread: float = 360,
        hits: int = 3,
        limit: Any = None,
        drift: float = 0.0,
        delay: float = 0.0,
    ) -> None:
        if task not in LIMITS:
            raise ValueError(f"task={task!r} is not known; known are {', '.join(LIMITS)}")
        if version not in (3, 4):
            raise ValueError(f"version={version!r} is not known; use 3 (0.3.7) or 4 (0.4.4)")
        if stage not in STAGES:
            raise ValueError(f"stage={stage!r} is not known; known are {', '.join(STAGES)}")
        numbers = {"distance": distance, "spread": spread, "drift": drift, "delay": delay}
        for name, value in numbers.items():
            if not isinstance(value, (int, float)):
                raise ValueError(f"{name}={value!r} is no number")
        for name, value in (("hits", hits), ("limit", 1 if limit is None else limit)):
            if not isinstance(value, int):
                raise ValueError(f"{name}={value!r} is no whole number")
        if distance < 1 or hits < 1 or not 90 <= spread <= 360:
            raise ValueError(
                f"distance={distance!r}, hits={hits!r}, spread={spread!r}; distance and hits must "
                "be at least 1, spread between 90 and 360"
            )
        if not (0 <= drift <= 45 and 0 <= delay <= 60):
            raise ValueError(f"drift={drift!r}, delay={delay!r}; at most 45 degrees and a minute")
        self.task, self.version, self.stage = task, version, stage
        self.stride, self.spread, self.hits = (1 - REACH) / distance, spread, hits
        self.drift, self.delay = drift, delay
        self.spec = Spec(task, LIMITS[task] if limit is None else limit)
        self.treechop = task == "MineRLTreechop-v0"
        self.goal = "iron_pickaxe" if "IronPickaxe" in task else "diamond"
        self.observation_space, self.action_space = self._spaces()
        self._seed, self.done = None, True

    def _spaces(self):
        actions: list = [(button, Discrete(2)) for button in BUTTONS]
        actions.append(("camera", Box(-180, 180, (2,), np.float32)))
        observed: list = [("pov", Box(0, 255, (SIZE, SIZE, 3), np.uint8))]
        if not self.treechop:
            actions += [(head, Enum(*values)) for head, values in DECLARED.items()]
            counts = Dict((item, Box(0, 2304, (), np.int32)) for item in ITEMS)
            damage = Box(-1, 1562, (), np.int32)
            hand = [("damage", damage), ("maxDamage", damage), ("type", Enum(*HELD))]
            observed.append(("inventory", counts))
            if self.version == 3:
                observed += [("equipped_items.mainhand." + key, part) for key, part in hand]
            else:
                observed.append(("equipped_items", Dict([("mainhand", Dict(hand))])))
        return Dict(observed), Dict(actions)

    def seed(self, seed: Any = None) -> None:
        """Choose the world of the next episode; as in minerl, of that one only."""
        assert isinstance(seed, int), "Seed must be an int!"
        self._seed = seed

    def reset(self) -> dict:
        """Begin an episode and return its first observation."""
        rng = np.random.RandomState(None if self._seed is None else self._seed % 2**32)
        self._seed = None
        gap = self.spread / len(STANDING)
        kinds = [STANDING[i] for i in rng.permutation(len(STANDING))]
        if self.treechop:
            kinds = ["tree"] * len(kinds)
        self.things = []
        for i, kind in enumerate(kinds):
            bearing = (i + 0.5 + rng.uniform(-0.1, 0.1)) * gap - self.spread / 2
            left = float("inf") if self.treechop else SOURCES[kind][1]
            self.things.append(Thing(kind, towards(bearing), left, 1.0))
        self.place, self.heading, self.pitch, self._wind = 0j, 0.0, 0.0, rng
        self.items: dict = dict.fromkeys((*ITEMS, "diamond"), 0)
        self.items.update({} if self.treechop else STAGES[self.stage])
        self.had = {item for item, n in self.items.items() if n}
        self.held, self.damage = None, collections.Counter()
        self.target, self.progress, self.steps, self.done = None, 0, 0, False
        return self._observe()

    def step(self, action: dict) -> tuple:
        """Take a step; returns observation, reward, done, info."""
        if self.done:
            raise RuntimeError("Attempted to step an environment with done=True")
        action = {head: self._value(head, value) for head, value in action.items()}
        self.steps += 1
        if self.delay:
            time.sleep(self.delay)
        before = dict(self.items)
        self._turn_and_walk(action)
        # What does not work does nothing, as in Minecraft.
        for head, use in [
            ("craft", self._make),
            ("nearbyCraft", self._make),
            ("nearbySmelt", self._make),
            ("place", self._put),
            ("equip", self._hold),
        ]:
            name = action.get(head, "none")
            if name != "none":
                use(name)
        if action.get("attack"):
            self._work()
        else:
            self.target, self.progress = None, 0
        gained = [item for item in self.items if self.items[item] > before[item]]
        if self.treechop:
            reward = self.items["log"] - before["log"]
            solved = self.items["log"] >= 64
        else:
            reward = sum(REWARDS.get(item, 0) for item in gained if item not in self.had)
            solved = self.goal in gained
        self.had.update(gained)
        late = self.steps >= self.spec.max_episode_steps
        self.done = solved or late
        info = {"TimeLimit.truncated": True} if late and not solved else {}
        return self._observe(), float(reward), self.done, info

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        """Return the picture."""
        return self._picture()

    def close(self) -> None:
        """Nothing is left open."""

    def _value(self, head, value):
        """Return a part of an action as minerl understands it: see the module `server`."""
        assert head in self.action_space.spaces, f"there is no action {head!r}"
        space = self.action_space.spaces[head]
        if not isinstance(space, Enum):
            return value
        if self.version == 3 and isinstance(value, int):
            return str(space.values[value])
        assert isinstance(value, str), f"Enum action {head} must be str: {value!r}"
        assert value in space.values, f"Invalid value for enum action {head}, {value}"
        return value

    def _turn_and_walk(self, action):
        pitch, yaw = (float(x) for x in np.ravel(action.get("camera", (0, 0))))
        if self.drift:
            yaw += self._wind.normal(0.0, self.drift)
        self.heading = (self.heading + yaw) % 360
        self.pitch = min(max(self.pitch + pitch, -30.0), 30.0)
        ahead = action.get("forward", 0) - action.get("back", 0)
        aside = action.get("right", 0) - action.get("left", 0)
        pace = 0.3 if action.get("sneak") else 1.3 if action.get("sprint") else 1.0
        length = self.stride * pace
        faced = self._faced()
        if faced is not None and ahead > 0:  # nobody walks through a tree
            length = min(length, max(self._distance(faced) - (1 - ARENA), 0.0))
        way = ahead * towards(self.heading) + aside * towards(self.heading + 90)
        place = self.place + length * way
        self.place = place * min(1.0, ARENA / max(abs(place), 1e-9))

    def _make(self, name):
        uses, n, station = RECIPES[name]
        there = station is None or any(
            thing.kind == station and self._distance(thing) <= NEAR for thing in self.things
        )
        if there and all(self.items[item] >= k for item, k in uses.items()):
            for item, k in uses.items():
                self.items[item] -= k
            self.items[name] += n

    def _put(self, name):
        if not self.items[name]:
            return
        kind = "block of " + name if name in SOURCES else name
        blocks = [thing.place for thing in self.things if thing.height < 1]
        for turn in (0, 50, -50, 100, -100, 150, -150):
            place = self.place + 0.2 * towards(self.heading + turn)
            if all(abs(place - other) >= 2 * RADIUS for other in blocks):
                self.items[name] -= 1
                self.things.append(Thing(kind, place, 0, 0.5))
                return

    def _hold(self, name):
        if name == "air":
            self.held = None
        elif self.items[name]:
            self.held = name

    def _work(self):
        """Hit what is in the middle of the picture, if it is in reach."""
        target = self._faced()
        if target is None or self._distance(target) > REACH:
            self.target, self.progress = None, 0
            return
        item, _, tools = SOURCES[target.kind]
        if tools and self.held not in tools:
            return
        self.progress = self.progress + 1 if target is self.target else 1
        self.target = target
        if self.progress < self.hits:
            return
        self.progress = 0
        self.items[item] += 1
        target.left -= 1
        if target.left <= 0:
            self.things.remove(target)
            self.target = None
        if self.held is not None:
            self.damage[self.held] += 1
            if self.damage[self.held] >= self._durability():
                self.items[self.held] -= 1
                self.damage[self.held] = 0
                if not self.items[self.held]:
                    self.held = None

    def _durability(self):
        return 0 if self.held is None else DURABILITY[self.held.split("_")[0]]

    def _distance(self, thing):
        return abs(thing.place - self.place)

    def _bearing(self, thing):
        """Return where it is seen, in degrees from the middle, and how wide to each side."""
        away = thing.place - self.place
        bearing = math.degrees(math.atan2(away.real, away.imag)) - self.heading
        near = abs(away) <= RADIUS
        half = 180.0 if near else math.degrees(math.asin(RADIUS / abs(away)))
        return (bearing + 180) % 360 - 180, half

    def _faced(self):
        """Return what stands in the middle of the picture, or None."""
        seen = [(thing, *self._bearing(thing)) for thing in self.things if thing.height == 1]
        faced = [thing for thing, bearing, half in seen if abs(bearing) < half]
        return min(faced, key=self._distance, default=None)

    def _picture(self):
        horizon = round(SIZE / 2 + self.pitch / ANGLE)
        picture = np.empty((SIZE, SIZE, 3), np.uint8)
        picture[:horizon], picture[horizon:] = COLORS["sky"], COLORS["ground"]
        columns = (np.arange(SIZE) - (SIZE - 1) / 2) * ANGLE
        for thing in sorted(self.things, key=self._distance, reverse=True):
            bearing, half = self._bearing(thing)
            seen = np.abs(columns - bearing) < half
            size = 6 / max(self._distance(thing), 0.05)
            if thing.height == 1:
                top, bottom = horizon - size, horizon + size
            else:
                top, bottom = horizon + size * (1 - thing.height), SIZE
            top = int(min(max(top, 0), SIZE - 4))
            picture[top : int(max(bottom, top + 1)), seen] = COLORS[thing.kind]
        return picture

    def _observe(self):
        pov = self._picture()
        if self.treechop:
            return {"pov": pov}
        held = self.held or ("none" if self.version == 3 else "air")
        damage = self.damage[self.held] if self.held else 0
        counts = {item: np.array(self.items[item], np.int32) for item in ITEMS}
        hand: dict = {
            "damage": np.array(damage, np.int32),
            "maxDamage": np.array(self._durability(), np.int32),
        }
        observation = {"pov": pov, "inventory": counts}
        if self.version == 3:
            hand["type"] = np.array(held)
            observation.update({"equipped_items.mainhand." + k: v for k, v in hand.items()})
        else:
            hand["type"] = held
            observation["equipped_items"] = {"mainhand": hand}
        return observation


make = ScriptedEnv
"""What `server.py` calls with the name of a task, and with options."""


def scripted_action(observation: dict, goal: str = "diamond") -> dict:
    """Return what one who knows the tool chain does next, towards one more of an item.

    It remembers nothing: it turns until it sees what it needs, walks there, and works.

    Args:
        observation: As `environment.MineRLEnv` gives it.
        goal: The item wanted: "diamond", or one of `ITEMS`.

    Returns:
        An action of `environment.MineRLEnv`, with enums as indices.
    """
    counts: dict = dict(zip(sorted(ITEMS), np.asarray(observation["inventory"]).tolist()))
    counts["diamond"] = int(observation["diamond"])
    held = sorted(HELD)[int(observation["equipped"])]
    wanted = _obtain(goal, counts[goal] + 1, counts, held, np.asarray(observation["pov"]))
    action: dict = dict.fromkeys(BUTTONS, 0)
    action["camera"] = np.zeros(2, np.float32)
    for head, values in DECLARED.items():
        action[head] = sorted(values).index(wanted.pop(head, "none"))
    action["camera"][1] = wanted.pop("yaw", 0)
    action.update(wanted)
    return action


def _obtain(item, n, counts, held, pov):
    """Return what to do now to have n of an item, or None if they are there."""
    missing = n - counts[item]
    if missing <= 0:
        return None
    for kind, (given, _, tools) in SOURCES.items():
        if given == item:
            owned = [tool for tool in tools if counts[tool]]
            if tools and not owned:
                return _obtain(tools[0], 1, counts, held, pov)
            if tools and held not in tools:
                return {"equip": owned[-1]}
            _, way = _approach(pov, kind, SIZE + 1)
            return way if "yaw" in way else dict(way, attack=1)
    uses, made, station = RECIPES[item]
    for part, k in uses.items():
        now = _obtain(part, k * -(-missing // made), counts, held, pov)
        if now is not None:
            return now
    if station is None:
        return {"craft": item}
    width, way = _approach(pov, station, 18)
    if not width and counts[station]:
        return {"place": station}
    if not width and not any(counts[result] for result in _results(station)):
        return _obtain(station, 1, counts, held, pov)
    if way:
        return way
    return {"nearbyCraft" if station == "crafting_table" else "nearbySmelt": item}


def _results(station):
    """Return what was made at a block: who has it has put one down before."""
    return [item for item, recipe in RECIPES.items() if recipe[2] == station and item != "coal"]


def _approach(pov, kind, near):
    """Return how many columns wide something is seen, and how to get it into the middle and near.

    Of several, the one nearest to the middle counts.
    """
    seen = np.flatnonzero((pov == COLORS[kind]).all(axis=-1).any(axis=0))
    if not len(seen):
        return 0, {"yaw": 30.0}
    groups = np.split(seen, np.flatnonzero(np.diff(seen) > 1) + 1)
    middle = (SIZE - 1) / 2
    group = min(groups, key=lambda columns: np.abs(columns - middle).min())
    # Both columns beside the middle, so that the middle itself is covered; a sliver has only one.
    if (np.abs(group - middle) < 1).sum() < min(2, len(group)):
        return len(group), {"yaw": float(ANGLE * (group.mean() - middle))}
    return len(group), {"forward": 1} if len(group) < near else {}
