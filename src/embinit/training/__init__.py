"""Training: batches, the step, the loop, scores."""
