"""Data sets: read from the layouts that people have, or generated."""
