"""Run folders on disk: write, find and collect results."""
