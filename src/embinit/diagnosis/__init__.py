"""Diagnosis: measurements of vectors in a model, and the advice that follows from them."""
