"""Experiments: from a TOML to members, engines and run folders."""
