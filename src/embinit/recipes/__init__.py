"""Recipes: from aligned vectors to the matrix that training starts from."""
