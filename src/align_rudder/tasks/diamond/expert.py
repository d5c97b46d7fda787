"""A scripted player that acts only on what it has seen; it makes the demonstrations.

It keeps to one plan: wood for tools and a second table, table, pickaxes, coal and iron, furnace,
iron pickaxe, diamond. What it lacks it fetches from the nearest place that it remembers; if it
remembers none, it explores, the mountains first. It drinks, eats, fights what stands in its way,
and spends the night walled in, as well as whatever time it needs to recover.
"""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit

__all__ = ["expert_action"]

# Blocks and actions of Craftax-Classic, as compiled code sees them.
_UNSEEN, _GRASS, _WATER, _STONE, _TREE, _PATH = 0, 2, 3, 4, 5, 7
_COAL, _IRON, _DIAMOND, _TABLE, _FURNACE, _SAND, _LAVA = 8, 9, 10, 11, 12, 13, 14
_NOOP, _DO, _SLEEP, _PLACE_STONE, _PLACE_TABLE, _PLACE_FURNACE = 0, 5, 6, 7, 8, 9
_WOOD_PICKAXE, _STONE_PICKAXE, _IRON_PICKAXE, _WOOD_SWORD, _STONE_SWORD = 11, 12, 13, 14, 15
_DY = np.array([0, 0, 0, -1, 1])
_DX = np.array([0, -1, 1, 0, 0])
_FAR = 1 << 20
# Inventory.
_I_WOOD, _I_STONE, _I_COAL, _I_IRON = 0, 1, 2, 3
_I_WOOD_PICKAXE, _I_STONE_PICKAXE, _I_IRON_PICKAXE, _I_WOOD_SWORD, _I_STONE_SWORD = 6, 7, 8, 9, 10


@njit(cache=True)
def _cost(block, inventory):
    """Return the steps to enter a cell, digging included; _FAR if that cannot be done."""
    if block == _GRASS or block == _SAND or block == _PATH:
        return 1
    if block == _TREE:
        return 3
    if inventory[_I_WOOD_PICKAXE] > 0 and (block == _STONE or block == _COAL):
        return 2
    if inventory[_I_STONE_PICKAXE] > 0 and block == _IRON:
        return 2
    if inventory[_I_IRON_PICKAXE] > 0 and block == _DIAMOND:
        return 2
    if block == _WATER and inventory[_I_STONE] > 2:
        return 6
    return _FAR


@njit(cache=True)
def _distances(seen, mobs, y, x, inventory):
    """Return the steps from (y, x) to every known cell, and the first move of the way there."""
    size = seen.shape[0]
    distance = np.full((size, size), _FAR)
    move = np.zeros((size, size), np.int64)
    distance[y, x] = 0
    # Costs are small, so that buckets by distance make a queue.
    buckets = [[y * size + x]]
    d = 0
    while d < len(buckets):
        for at in buckets[d]:
            cy, cx = at // size, at % size
            if distance[cy, cx] < d:
                continue
            for a in range(1, 5):
                ny, nx = cy + _DY[a], cx + _DX[a]
                if not (0 <= ny < size and 0 <= nx < size):
                    continue
                step = _cost(seen[ny, nx], inventory)
                if step >= _FAR:
                    continue
                if mobs[ny, nx]:
                    step += 6
                new = d + step
                if new < distance[ny, nx]:
                    distance[ny, nx] = new
                    move[ny, nx] = a if d == 0 else move[cy, cx]
                    while len(buckets) <= new:
                        buckets.append([0 for _ in range(0)])
                    buckets[new].append(ny * size + nx)
        d += 1
    return distance, move


@njit(cache=True)
def _towards(seen, mobs, y, x, facing, move):
    """Return the action that makes a move: turn, dig, bridge, hit or walk."""
    ny, nx = y + _DY[move], x + _DX[move]
    block = seen[ny, nx]
    if mobs[ny, nx] or (block != _GRASS and block != _SAND and block != _PATH):
        if facing != move:
            return move
        return _PLACE_STONE if block == _WATER and not mobs[ny, nx] else _DO
    return move


@njit(cache=True)
def _near(seen, y, x, kind):
    """Return whether a block of a kind is next to (y, x), corners included."""
    size = seen.shape[0]
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if (dy or dx) and 0 <= y + dy < size and 0 <= x + dx < size:
                if seen[y + dy, x + dx] == kind:
                    return True
    return False


@njit(cache=True)
def _nearest(seen, distance, move, kind):
    """Return the distance of the nearest block of a kind, by way of its neighbours, and the move.

    The move is that towards the neighbour, or 0 if the player stands there.
    """
    size = seen.shape[0]
    best, first, cell = _FAR, 0, 0
    for y in range(size):
        for x in range(size):
            if seen[y, x] == kind:
                for a in range(1, 5):
                    ny, nx = y + _DY[a], x + _DX[a]
                    if 0 <= ny < size and 0 <= nx < size and distance[ny, nx] < best:
                        best, first, cell = distance[ny, nx], move[ny, nx], y * size + x
    return best, first, cell


@njit(cache=True)
def _explore(wanted, seen, mobs, distance, move, mountains, y0, x0, facing):
    """Return the action towards the best place to view wanted cells from, 0 if there is none."""
    size = seen.shape[0]
    best, first = _FAR, 0
    for y in range(size):
        for x in range(size):
            if distance[y, x] >= _FAR or (y == y0 and x == x0):
                continue
            new = 0
            for ny in range(max(y - 3, 0), min(y + 4, size)):
                for nx in range(max(x - 4, 0), min(x + 5, size)):
                    new += wanted[ny, nx]
            if new == 0:
                continue
            rate = distance[y, x] * 4 - 2 * min(new, 30)
            if mountains:
                rocks = 0
                for ny in range(max(y - 2, 0), min(y + 3, size)):
                    for nx in range(max(x - 2, 0), min(x + 3, size)):
                        b = seen[ny, nx]
                        rocks += b == _STONE or b == _PATH or b == _COAL or b == _IRON
                rate -= 4 * min(rocks, 12)
            if rate < best:
                best, first = rate, move[y, x]
    return _towards(seen, mobs, y0, x0, facing, first) if first else 0


@njit(cache=True)
def _fetch(seen, mobs, distance, move, kind, y, x, facing, mountains):
    """Return the action that brings the player to a block and takes it."""
    size = seen.shape[0]
    best, first, cell = _nearest(seen, distance, move, kind)
    if best >= _FAR:
        return _explore(seen == _UNSEEN, seen, mobs, distance, move, mountains, y, x, facing)
    if first:
        return _towards(seen, mobs, y, x, facing, first)
    for a in range(1, 5):
        if y + _DY[a] == cell // size and x + _DX[a] == cell % size:
            return _DO if facing == a else a
    return _DO


@njit(cache=True)
def _face_free(seen, mobs, y, x, facing):
    """Return 0 if the player faces a free cell to place something on, else the turn to one."""
    size = seen.shape[0]
    for a in (facing, 1, 2, 3, 4):
        ny, nx = y + _DY[a], x + _DX[a]
        if 0 <= ny < size and 0 <= nx < size and not mobs[ny, nx]:
            b = seen[ny, nx]
            if b == _GRASS or b == _SAND or b == _PATH:
                return 0 if a == facing else a
    return -1


@njit(cache=True)
def _is_open(seen, y, x):
    """Return whether a mob might come from a cell."""
    size = seen.shape[0]
    if not (0 <= y < size and 0 <= x < size):
        return False
    b = seen[y, x]
    return b == _GRASS or b == _SAND or b == _PATH or b == _LAVA or b == _UNSEEN


@njit(cache=True)
def _is_enclosed(seen, y, x):
    """Return whether at most four cells can be reached from (y, x) without digging."""
    size = seen.shape[0]
    cells = [y * size + x]
    for at in cells:
        for a in range(1, 5):
            ny, nx = at // size + _DY[a], at % size + _DX[a]
            if _is_open(seen, ny, nx) and ny * size + nx not in cells:
                if len(cells) == 4:
                    return False
                cells.append(ny * size + nx)
    return True


@njit(cache=True)
def _chamber(seen, distance, y, x, a, inventory):
    """Return the steps to close oneself in (y, x) and its neighbour in direction a, if possible.

    A player turns only by moving, so that of two cells just the two ends can be closed from inside;
    the four cells beside them have to be closed already.
    """
    size = seen.shape[0]
    ny, nx = y + _DY[a], x + _DX[a]
    if not (0 <= ny < size and 0 <= nx < size) or _cost(seen[ny, nx], inventory) > 3:
        return _FAR
    for cy, cx in ((y, x), (ny, nx)):
        for sign in (-1, 1):
            if _is_open(seen, cy + sign * _DX[a], cx + sign * _DY[a]):
                return _FAR
    steps = distance[y, x] + 2 * _cost(seen[ny, nx], inventory)
    ends = 0
    for ey, ex in ((y - _DY[a], x - _DX[a]), (ny + _DY[a], nx + _DX[a])):
        if _is_open(seen, ey, ex):
            if seen[ey, ex] == _LAVA or seen[ey, ex] == _UNSEEN:
                return _FAR
            ends += 1
    return steps + 2 * ends if inventory[_I_STONE] >= ends else _FAR


@njit(cache=True)
def _shelter(seen, mobs, distance, move, y, x, facing, inventory):
    """Return the action that leads into a closed chamber, -1 if none is known."""
    size = seen.shape[0]
    best, cell, way = _FAR, 0, 0
    for cy in range(size):
        for cx in range(size):
            if distance[cy, cx] < best and _cost(seen[cy, cx], inventory) <= 3:
                for a in range(1, 5):
                    steps = _chamber(seen, distance, cy, cx, a, inventory)
                    if steps < best:
                        best, cell, way = steps, cy * size + cx, a
    if best >= _FAR:
        return -1
    cy, cx = cell // size, cell % size
    if cy != y or cx != x:
        return _towards(seen, mobs, y, x, facing, move[cy, cx])
    by, bx = y - _DY[way], x - _DX[way]
    if _is_open(seen, by, bx) and by == y + _DY[facing] and bx == x + _DX[facing]:
        return _DO if mobs[by, bx] else _PLACE_STONE
    return _towards(seen, mobs, y, x, facing, way)


@njit(cache=True)
def _nearest_cow(cows, distance, y, x):
    """Return the steps to the nearest cow in view and its cell, _FAR if there is none."""
    size = cows.shape[0]
    best, cell = _FAR, 0
    for cy in range(max(y - 3, 0), min(y + 4, size)):
        for cx in range(max(x - 4, 0), min(x + 5, size)):
            if cows[cy, cx] and distance[cy, cx] < best:
                best, cell = distance[cy, cx], cy * size + cx
    return best, cell


@njit(cache=True)
def expert_action(seen, viewed, t, mobs, cows, y, x, facing, inventory, needs, asleep, dark):
    """Return the action of the expert.

    Args:
        seen: Memory of the map (64, 64).
        viewed: When each cell was last in view (64, 64); it is updated.
        t: Time.
        mobs: Where in view a mob stands (64, 64).
        cows: Where in view a cow stands (64, 64).
        y: Row of the player.
        x: Column of the player.
        facing: Direction, 1 to 4, as actions.
        inventory: Items.
        needs: Health, food, drink, energy.
        asleep: Whether the player sleeps.
        dark: Whether it is night.
    """
    viewed[max(y - 3, 0) : y + 4, max(x - 4, 0) : x + 5] = t
    if asleep:
        return _NOOP
    size = seen.shape[0]
    distance, move = _distances(seen, mobs, y, x, inventory)
    # An enemy beside the player is fought.
    for a in range(1, 5):
        ny, nx = y + _DY[a], x + _DX[a]
        if 0 <= ny < size and 0 <= nx < size and mobs[ny, nx] and not cows[ny, nx]:
            return _DO if facing == a else a
    health, food, drink, energy = needs[0], needs[1], needs[2], needs[3]
    facing_y, facing_x = y + _DY[facing], x + _DX[facing]
    inside = 0 <= facing_y < size and 0 <= facing_x < size
    if drink < 9 and inside and seen[facing_y, facing_x] == _WATER and not mobs[facing_y, facing_x]:
        return _DO  # having come so far, drink enough
    enclosed = _is_enclosed(seen, y, x)
    if enclosed and food > 1 and drink > 1 and (dark or health < 9 or energy < 5):
        return _SLEEP if energy < 9 else _NOOP
    weak = health <= 4 and food > 0 and drink > 0
    if not weak:
        best, _, _ = _nearest(seen, distance, move, _WATER)
        if (drink <= 3 and best < _FAR) or drink <= 2:
            return _fetch(seen, mobs, distance, move, _WATER, y, x, facing, False)
        best, cell = _nearest_cow(cows, distance, y, x)
        if best < _FAR and (food <= 4 or (food <= 5 and best <= 4)):
            first = move[cell // size, cell % size]
            return _towards(seen, mobs, y, x, facing, first)
        if food <= 3:
            wanted = (seen == _UNSEEN) | ((seen == _GRASS) & (viewed < t - 60))
            return _explore(wanted, seen, mobs, distance, move, False, y, x, facing)
    if weak or energy <= 2 or (dark and energy <= 6):
        if inventory[_I_WOOD_PICKAXE] > 0:
            a = _shelter(seen, mobs, distance, move, y, x, facing, inventory)
            if a >= 0:
                return a
        if energy <= 0:
            return _SLEEP
    wood, stone = inventory[_I_WOOD], inventory[_I_STONE]
    at_table = _near(seen, y, x, _TABLE)
    if inventory[_I_WOOD_PICKAXE] == 0:
        best, first, _ = _nearest(seen, distance, move, _TABLE)
        if best >= _FAR and wood < 8:
            return _fetch(seen, mobs, distance, move, _TREE, y, x, facing, False)
        if at_table:
            return _WOOD_PICKAXE
        if best < _FAR and best < 12:
            return _towards(seen, mobs, y, x, facing, first)
        a = _face_free(seen, mobs, y, x, facing)
        return _PLACE_TABLE if a <= 0 else a
    if at_table and inventory[_I_WOOD_SWORD] == 0 and inventory[_I_STONE_PICKAXE] == 0 and wood > 4:
        return _WOOD_SWORD
    if inventory[_I_STONE_PICKAXE] == 0:
        if stone < 2:
            return _fetch(seen, mobs, distance, move, _STONE, y, x, facing, True)
        if at_table:
            return _STONE_PICKAXE
        best, first, _ = _nearest(seen, distance, move, _TABLE)
        if best > 14 and wood >= 3:
            a = _face_free(seen, mobs, y, x, facing)
            return _PLACE_TABLE if a <= 0 else a
        if best >= _FAR:
            return _fetch(seen, mobs, distance, move, _TREE, y, x, facing, False)
        return _towards(seen, mobs, y, x, facing, first) if first else _NOOP
    if inventory[_I_IRON_PICKAXE] == 0:
        if at_table and inventory[_I_STONE_SWORD] == 0 and wood >= 2 and stone >= 1:
            return _STONE_SWORD
        if stone < 3:
            return _fetch(seen, mobs, distance, move, _STONE, y, x, facing, True)
        if inventory[_I_COAL] < 1:
            return _fetch(seen, mobs, distance, move, _COAL, y, x, facing, True)
        if inventory[_I_IRON] < 1:
            return _fetch(seen, mobs, distance, move, _IRON, y, x, facing, True)
        if at_table:
            if wood < 1:
                return _fetch(seen, mobs, distance, move, _TREE, y, x, facing, False)
            if _near(seen, y, x, _FURNACE):
                return _IRON_PICKAXE
            a = _face_free(seen, mobs, y, x, facing)
            return _PLACE_FURNACE if a <= 0 else a
        best, first, _ = _nearest(seen, distance, move, _TABLE)
        if wood >= 3 and best > 8:
            a = _face_free(seen, mobs, y, x, facing)
            if a < 0:
                return _DO
            return _PLACE_TABLE if a == 0 else a
        if wood < 1 or best >= _FAR:
            return _fetch(seen, mobs, distance, move, _TREE, y, x, facing, False)
        return _towards(seen, mobs, y, x, facing, first) if first else _NOOP
    return _fetch(seen, mobs, distance, move, _DIAMOND, y, x, facing, True)
