"""Out: a matrix for other tools, or into a model."""
