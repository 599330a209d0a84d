"""Prepared tasks: packed token ids that any machine can read with numpy alone."""
