"""Demonstrations from elsewhere: files of any kind (`sources`), Minari, built-in crafting episodes.

`rewards` writes redistributed rewards for others to read.
"""
