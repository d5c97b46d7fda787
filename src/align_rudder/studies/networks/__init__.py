"""Recipes with networks: PPO on a level of MiniGrid, from logs that hold events alone."""
