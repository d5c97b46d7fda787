"""The MineRL dataset: reading it, converting it, and generating trees in its format."""
