"""Train groups of jobs on the machines of a Ray cluster."""
