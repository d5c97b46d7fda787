"""What agents are trained on: tables, rooms, key and chest, Diamond."""

from align_rudder.tasks.environment import TabularEnv
from align_rudder.tasks.key_chest import KeyChestEnv
from align_rudder.tasks.recipes import RecipesEnv
from align_rudder.tasks.rooms import RoomsEnv, RoomsMap

__all__ = ["KeyChestEnv", "RecipesEnv", "RoomsEnv", "RoomsMap", "TabularEnv"]
