"""A recipe that is learned at once, and its logs."""

from align_rudder.baselines import Protocol
from align_rudder.tasks import RecipesEnv

GREEDY = Protocol(max_episodes=1000, evaluation_epsilon=0.0, evaluation_episodes=1)


def small_recipe(seed=0, length=2, **options):
    """Return an environment of two items on 4 × 4 cells and six logs of other layouts."""
    size = {"items": 2, "distractors": 1, "size": 4, "recipe_seed": seed, **options}
    env = RecipesEnv(length, seed=seed, **size)
    return env, [RecipesEnv(length, seed=[seed, j], **size).log(j) for j in range(6)]
