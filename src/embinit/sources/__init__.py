"""Sources: vectors from wherever people have them."""
