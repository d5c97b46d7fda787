"""Work that can be stopped and resumed: lock, claim, rows, checkpoints, interrupts, progress."""
