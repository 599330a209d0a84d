"""Corpora: data sets in the layouts people have them in, and one that is generated."""
