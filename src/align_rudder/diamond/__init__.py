"""ObtainDiamond on Craftax-Classic: the paper's second half without Minecraft."""
