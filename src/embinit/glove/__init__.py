"""Train word vectors on text with GloVe's objective (Pennington, Socher and Manning 2014)."""

from embinit.glove.training import TrainedVectors, train

__all__ = ["TrainedVectors", "train"]
