"""Fit the rows of new tokens so that a frozen model reads them as it read the old pieces."""
