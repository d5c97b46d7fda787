"""A made-up world and writers of datasets, to try the MineRL part without Minecraft."""
