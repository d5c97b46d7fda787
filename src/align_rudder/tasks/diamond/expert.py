"""A scripted player that acts only on what it has seen; it makes the demonstrations.

It keeps to one plan: wood for tools and a second table, table, pickaxes, coal and iron, furnace,
iron pickaxe, diamond. What it lacks it fetches from the nearest place that it remembers; if it
remembers none, it explores, the mountains first. It drinks, eats, fights what stands in its way,
and spends the night walled in, as well as whatever time it needs to recover.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from align_rudder._compile import njit

__all__ = ["MARGIN", "Scene", "expert_action"]

MARGIN = 4
"""Cells around the map of a scene, out of bounds, so that what is in view lies inside it."""
# Blocks and actions of Craftax-Classic, as compiled code sees them.
_UNSEEN, _GRASS, _WATER, _STONE, _TREE, _PATH = 0, 2, 3, 4, 5, 7
_COAL, _IRON, _DIAMOND, _TABLE, _FURNACE, _SAND, _LAVA = 8, 9, 10, 11, 12, 13, 14
_NOOP, _DO, _SLEEP, _PLACE_STONE, _PLACE_TABLE, _PLACE_FURNACE = 0, 5, 6, 7, 8, 9
_WOOD_PICKAXE, _STONE_PICKAXE, _IRON_PICKAXE, _WOOD_SWORD, _STONE_SWORD = 11, 12, 13, 14, 15
_DY = np.array([0, 0, 0, -1, 1])
_DX = np.array([0, -1, 1, 0, 0])
_BACK = np.array([0, 2, 1, 4, 3])
_FAR = 1 << 20
# Inventory.
_I_WOOD, _I_STONE, _I_COAL, _I_IRON = 0, 1, 2, 3
_I_WOOD_PICKAXE, _I_STONE_PICKAXE, _I_IRON_PICKAXE, _I_WOOD_SWORD, _I_STONE_SWORD = 6, 7, 8, 9, 10


class Scene(NamedTuple):
    """What the player knows at one time; maps have a margin of `MARGIN` cells.

    Attributes:
        seen: Memory of the map (72, 72).
        mobs: Where in view a mob stands (72, 72).
        cows: Where in view a cow stands (72, 72).
        y: Row of the player.
        x: Column of the player.
        facing: Direction, 1 to 4, as actions.
        items: Inventory.
        needs: Health, food, drink, energy.
        asleep: Whether the player sleeps.
        dark: Whether it is night.
    """

    seen: Any  # arrays of NumPy, or of JAX
    mobs: Any
    cows: Any
    y: Any
    x: Any
    facing: Any
    items: Any
    needs: Any
    asleep: Any
    dark: Any


class _Ways(NamedTuple):
    """The steps from the player to every known cell, and the first move of the way there."""

    distance: np.ndarray
    move: np.ndarray


@njit(cache=True)
def _inside(scene):
    """Return the rows, and the columns, that are not of the margin."""
    return range(MARGIN, scene.seen.shape[0] - MARGIN)


@njit(cache=True)
def _is_ground(block):
    return block == _GRASS or block == _SAND or block == _PATH


@njit(cache=True)
def _cost(block, items):
    """Return the steps to enter a cell, digging included; _FAR if that cannot be done."""
    if _is_ground(block):
        return 1
    if block == _TREE:
        return 3
    if items[_I_WOOD_PICKAXE] > 0 and (block == _STONE or block == _COAL):
        return 2
    if items[_I_STONE_PICKAXE] > 0 and block == _IRON:
        return 2
    if items[_I_IRON_PICKAXE] > 0 and block == _DIAMOND:
        return 2
    if block == _WATER and items[_I_STONE] > 2:
        return 6
    return _FAR


@njit(cache=True)
def _find_ways(scene):
    """Return the ways to every known cell."""
    size = scene.seen.shape[0]
    distance = np.full((size, size), _FAR)
    move = np.zeros((size, size), np.int64)
    distance[scene.y, scene.x] = 0
    # Costs are small, so that buckets by distance make a queue.
    buckets = [[scene.y * size + scene.x]]
    d = 0
    while d < len(buckets):
        for at in buckets[d]:
            cy, cx = at // size, at % size
            if distance[cy, cx] < d:
                continue
            for a in range(1, 5):
                ny, nx = cy + _DY[a], cx + _DX[a]
                step = _cost(scene.seen[ny, nx], scene.items)
                if step >= _FAR:
                    continue
                new = d + step + (6 if scene.mobs[ny, nx] else 0)
                if new < distance[ny, nx]:
                    distance[ny, nx] = new
                    move[ny, nx] = a if d == 0 else move[cy, cx]
                    while len(buckets) <= new:
                        buckets.append([0 for _ in range(0)])
                    buckets[new].append(ny * size + nx)
        d += 1
    return _Ways(distance, move)


@njit(cache=True)
def _towards(scene, move):
    """Return the action that makes a move: turn, dig, bridge, hit or walk."""
    ny, nx = scene.y + _DY[move], scene.x + _DX[move]
    block, mob = scene.seen[ny, nx], scene.mobs[ny, nx]
    if scene.facing != move or (_is_ground(block) and not mob):
        return move
    return _PLACE_STONE if block == _WATER and not mob else _DO


@njit(cache=True)
def _near(scene, kind):
    """Return whether a block of a kind is next to the player, corners included."""
    return (scene.seen[scene.y - 1 : scene.y + 2, scene.x - 1 : scene.x + 2] == kind).any()


@njit(cache=True)
def _nearest(scene, ways, kind):
    """Return the distance of the nearest block of a kind, by way of its neighbours, and the move.

    The move is that towards the neighbour, or 0 if the player stands there; then comes the
    direction of the block from the neighbour.
    """
    best, first, side = _FAR, 0, 0
    for y in _inside(scene):
        for x in _inside(scene):
            if scene.seen[y, x] == kind:
                for a in range(1, 5):
                    ny, nx = y + _DY[a], x + _DX[a]
                    if ways.distance[ny, nx] < best:
                        best, first, side = ways.distance[ny, nx], ways.move[ny, nx], _BACK[a]
    return best, first, side


@njit(cache=True)
def _explore(scene, ways, wanted, mountains):
    """Return the action towards the best place to view wanted cells from, 0 if there is none."""
    seen = scene.seen
    rock = (seen == _STONE) | (seen == _PATH) | (seen == _COAL) | (seen == _IRON)
    best, first = _FAR, 0
    for y in _inside(scene):
        for x in _inside(scene):
            if ways.distance[y, x] >= _FAR or (y == scene.y and x == scene.x):
                continue
            new = wanted[y - 3 : y + 4, x - 4 : x + 5].sum()
            if new == 0:
                continue
            rate = ways.distance[y, x] * 4 - 2 * min(new, 30)
            if mountains:
                rate -= 4 * min(rock[y - 2 : y + 3, x - 2 : x + 3].sum(), 12)
            if rate < best:
                best, first = rate, ways.move[y, x]
    return _towards(scene, first) if first else _NOOP


@njit(cache=True)
def _fetch(scene, ways, kind):
    """Return the action that brings the player to a block and takes it."""
    best, first, side = _nearest(scene, ways, kind)
    if best >= _FAR:
        mountains = kind != _TREE and kind != _WATER
        return _explore(scene, ways, scene.seen == _UNSEEN, mountains)
    if first:
        return _towards(scene, first)
    return _DO if scene.facing == side else side


@njit(cache=True)
def _turn_to_ground(scene):
    """Return the turn to a free cell to place something on: 0 if it is ahead, -1 if none is."""
    for a in (scene.facing, 1, 2, 3, 4):
        ny, nx = scene.y + _DY[a], scene.x + _DX[a]
        if _is_ground(scene.seen[ny, nx]) and not scene.mobs[ny, nx]:
            return 0 if a == scene.facing else a
    return -1


# Rest


@njit(cache=True)
def _is_open(seen, y, x):
    """Return whether a mob might come from a cell."""
    return _is_ground(seen[y, x]) or seen[y, x] == _LAVA or seen[y, x] == _UNSEEN


@njit(cache=True)
def _is_enclosed(scene):
    """Return whether at most four cells can be reached from the player's without digging."""
    size = scene.seen.shape[0]
    cells = [scene.y * size + scene.x]
    for at in cells:
        for a in range(1, 5):
            ny, nx = at // size + _DY[a], at % size + _DX[a]
            if _is_open(scene.seen, ny, nx) and ny * size + nx not in cells:
                if len(cells) == 4:
                    return False
                cells.append(ny * size + nx)
    return True


@njit(cache=True)
def _chamber(scene, ways, y, x, a):
    """Return the steps to close oneself in (y, x) and its neighbour in direction a, if possible.

    A player turns only by moving, so that of two cells just the two ends can be closed from inside;
    the four cells beside them have to be closed already.
    """
    seen, dy, dx = scene.seen, _DY[a], _DX[a]
    cost = _cost(seen[y + dy, x + dx], scene.items)
    if cost > 3:
        return _FAR
    for cy, cx in ((y, x), (y + dy, x + dx)):
        if _is_open(seen, cy - dx, cx - dy) or _is_open(seen, cy + dx, cx + dy):
            return _FAR
    ends = 0
    for ey, ex in ((y - dy, x - dx), (y + 2 * dy, x + 2 * dx)):
        if _is_open(seen, ey, ex):
            if seen[ey, ex] == _LAVA or seen[ey, ex] == _UNSEEN:
                return _FAR
            ends += 1
    return ways.distance[y, x] + 2 * cost + 2 * ends if scene.items[_I_STONE] >= ends else _FAR


@njit(cache=True)
def _shelter(scene, ways):
    """Return the action that leads into a closed chamber, -1 if none is known."""
    seen = scene.seen
    best, cy, cx, way = _FAR, 0, 0, 0
    for y in _inside(scene):
        for x in _inside(scene):
            if ways.distance[y, x] < best and _cost(seen[y, x], scene.items) <= 3:
                for a in range(1, 5):
                    steps = _chamber(scene, ways, y, x, a)
                    if steps < best:
                        best, cy, cx, way = steps, y, x, a
    if best >= _FAR:
        return -1
    if cy != scene.y or cx != scene.x:
        return _towards(scene, ways.move[cy, cx])
    by, bx = scene.y - _DY[way], scene.x - _DX[way]
    ahead = by == scene.y + _DY[scene.facing] and bx == scene.x + _DX[scene.facing]
    if _is_open(seen, by, bx) and ahead:
        return _DO if scene.mobs[by, bx] else _PLACE_STONE
    return _towards(scene, way)


# What comes first, and the plan: actions, or minus the block to fetch


@njit(cache=True)
def _nearest_cow(scene, ways):
    """Return the steps to the nearest cow in view and the first move, _FAR if there is none."""
    best, first = _FAR, 0
    for y in range(scene.y - 3, scene.y + 4):
        for x in range(scene.x - 4, scene.x + 5):
            if scene.cows[y, x] and ways.distance[y, x] < best:
                best, first = ways.distance[y, x], ways.move[y, x]
    return best, first


@njit(cache=True)
def _survive(scene, ways, viewed, t):
    """Return what keeps the player alive, _FAR if nothing is urgent."""
    seen = scene.seen
    # An enemy beside the player is fought.
    for a in range(1, 5):
        ny, nx = scene.y + _DY[a], scene.x + _DX[a]
        if scene.mobs[ny, nx] and not scene.cows[ny, nx]:
            return _DO if scene.facing == a else a
    health, food, drink, energy = scene.needs[0], scene.needs[1], scene.needs[2], scene.needs[3]
    ny, nx = scene.y + _DY[scene.facing], scene.x + _DX[scene.facing]
    if drink < 9 and seen[ny, nx] == _WATER and not scene.mobs[ny, nx]:
        return _DO  # having come so far, drink enough
    if _is_enclosed(scene) and food > 1 and drink > 1 and (scene.dark or health < 9 or energy < 5):
        return _SLEEP if energy < 9 else _NOOP
    weak = health <= 4 and food > 0 and drink > 0
    if not weak:
        if drink <= 2 or (drink <= 3 and _nearest(scene, ways, _WATER)[0] < _FAR):
            return -_WATER
        best, first = _nearest_cow(scene, ways)
        if best < _FAR and (food <= 4 or (food <= 5 and best <= 4)):
            return _towards(scene, first)
        if food <= 3:
            wanted = (seen == _UNSEEN) | ((seen == _GRASS) & (viewed < t - 60))
            return _explore(scene, ways, wanted, False)
    if weak or energy <= 2 or (scene.dark and energy <= 6):
        if scene.items[_I_WOOD_PICKAXE] > 0:
            a = _shelter(scene, ways)
            if a >= 0:
                return a
        if energy <= 0:
            return _SLEEP
    return _FAR


@njit(cache=True)
def _advance(scene, ways):
    """Return what brings the plan forward."""
    items = scene.items
    wood, stone = items[_I_WOOD], items[_I_STONE]
    at_table, turn = _near(scene, _TABLE), _turn_to_ground(scene)
    best, first, _ = _nearest(scene, ways, _TABLE)
    to_table = _towards(scene, first) if first else _NOOP
    if items[_I_WOOD_PICKAXE] == 0:
        if best >= _FAR and wood < 8:
            return -_TREE
        if at_table:
            return _WOOD_PICKAXE
        if best < 12:
            return to_table
        return turn if turn > 0 else _PLACE_TABLE
    if at_table and items[_I_WOOD_SWORD] == 0 and items[_I_STONE_PICKAXE] == 0 and wood > 4:
        return _WOOD_SWORD
    if items[_I_STONE_PICKAXE] == 0:
        if stone < 2:
            return -_STONE
        if at_table:
            return _STONE_PICKAXE
        if best > 14 and wood >= 3:
            return turn if turn > 0 else _PLACE_TABLE
        return to_table if best < _FAR else -_TREE
    if items[_I_IRON_PICKAXE] == 0:
        if at_table and items[_I_STONE_SWORD] == 0 and wood >= 2 and stone >= 1:
            return _STONE_SWORD
        if stone < 3:
            return -_STONE
        if items[_I_COAL] < 1:
            return -_COAL
        if items[_I_IRON] < 1:
            return -_IRON
        if at_table:
            if wood < 1:
                return -_TREE
            if _near(scene, _FURNACE):
                return _IRON_PICKAXE
            return turn if turn > 0 else _PLACE_FURNACE
        if wood >= 3 and best > 8:
            return turn if turn > 0 else _PLACE_TABLE if turn == 0 else _DO
        return to_table if wood >= 1 and best < _FAR else -_TREE
    return -_DIAMOND


@njit(cache=True)
def expert_action(scene, viewed, t):
    """Return the action of the expert.

    Args:
        scene: What it knows.
        viewed: When each cell was last in view (72, 72); it is updated.
        t: Time.
    """
    viewed[scene.y - 3 : scene.y + 4, scene.x - 4 : scene.x + 5] = t
    if scene.asleep:
        return _NOOP
    ways = _find_ways(scene)
    action = _survive(scene, ways, viewed, t)
    if action == _FAR:
        action = _advance(scene, ways)
    return action if action >= 0 else _fetch(scene, ways, -action)
