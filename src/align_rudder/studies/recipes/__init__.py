"""Recipes: what aligning adds where logs of other layouts show an order that the state hides."""
