"""Readers and writers of demonstrations: npz, Minari, FASTA, JSON lines."""
