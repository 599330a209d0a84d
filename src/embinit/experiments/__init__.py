"""Experiments: read a TOML file, train its runs side by side, and write a folder for each run."""
