"""Matrices written for other tools, put into models, and trained at their own rate."""
