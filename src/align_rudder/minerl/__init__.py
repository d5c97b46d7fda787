"""ObtainDiamond on MineRL: its dataset, events and sub-tasks in it, networks, training, the game.

The game runs in another process (`process`, `server`), as it needs an older Python; `testing` has a
small world with the same interface, and writers of datasets in the same format.
"""
