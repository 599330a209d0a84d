"""Sources: reading pre-trained vectors from files, checkpoints and Python objects."""
