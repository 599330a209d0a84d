"""Initialize transformers with pre-trained embeddings, so that they help."""
__version__ = "0.1.0"
