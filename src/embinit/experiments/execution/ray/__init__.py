"""Engines beside the local one: the same groups of jobs, executed on other machines."""
