"""Recipes: how aligned vectors become the matrix that training starts from."""
