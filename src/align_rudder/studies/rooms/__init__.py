"""The paper's experiments: trials that are seeded, resumable and independent of each other."""
