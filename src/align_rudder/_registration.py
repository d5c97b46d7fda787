"""The environments by name, for `gymnasium.make`; their modules are imported when one is made."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

__all__ = ["register_tasks"]

_TASKS = {
    "FourRooms": ("align_rudder.tasks:RoomsEnv", {"rooms": 4}),
    "EightRooms": ("align_rudder.tasks:RoomsEnv", {"rooms": 8}),
    "Rooms": ("align_rudder.tasks:RoomsEnv", {}),
    "KeyChest": ("align_rudder.tasks:KeyChestEnv", {}),
    "Recipes": ("align_rudder.tasks:RecipesEnv", {}),
    "MiniGridRecipe": ("align_rudder.tasks.minigrid_recipe:MiniGridRecipeEnv", {}),
    "Diamond": ("align_rudder.tasks.diamond.environment:DiamondEnv", {}),
    "MineRL": ("align_rudder.minerl.environment:MineRLEnv", {}),
}


def register_tasks() -> None:
    """Register every environment that is not registered yet."""
    for name, (where, kwargs) in _TASKS.items():
        if (key := f"AlignRudder/{name}-v0") not in registry:
            register(key, where, kwargs=kwargs)
