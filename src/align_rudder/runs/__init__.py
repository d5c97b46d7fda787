"""Work that goes on where it was stopped: lock, claim, rows, checkpoints, interrupts, progress."""
