"""Tokens: vocabularies, tokenizers, and the marks that sub-word schemes put on them."""
