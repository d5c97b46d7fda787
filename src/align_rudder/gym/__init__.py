"""For environments and learners: wrappers, spaces, live curves, Stable-Baselines3."""
