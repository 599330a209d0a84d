"""Word vectors trained from text by GloVe's objective (Pennington, Socher and Manning 2014)."""

from embinit.text.glove.training import Trained, train

__all__ = ["Trained", "train"]
