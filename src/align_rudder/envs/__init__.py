"""Small environments with sparse, delayed reward, registered with Gymnasium."""

from gymnasium import register

from align_rudder.envs.base import TabularEnv
from align_rudder.envs.key_chest import KeyChestEnv
from align_rudder.envs.rooms import RoomsEnv, RoomsMap

__all__ = ["KeyChestEnv", "RoomsEnv", "RoomsMap", "TabularEnv"]

register("AlignRudder/FourRooms-v0", "align_rudder.envs:RoomsEnv", kwargs={"rooms": 4})
register("AlignRudder/EightRooms-v0", "align_rudder.envs:RoomsEnv", kwargs={"rooms": 8})
register("AlignRudder/Rooms-v0", "align_rudder.envs:RoomsEnv")
register("AlignRudder/KeyChest-v0", "align_rudder.envs:KeyChestEnv")
register("AlignRudder/Diamond-v0", "align_rudder.envs.diamond:DiamondEnv")  # imports JAX when made
register("AlignRudder/MineRL-v0", "align_rudder.minerl.environment:MineRLEnv")
