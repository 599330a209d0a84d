"""From names in an experiment file to fingerprinted data and vectors on disk."""
