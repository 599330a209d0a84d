"""Diagnosis: what vectors are like, what a model will make of them, and what to do."""
