"""Train jobs: group them, run them, score them, survive interruptions."""
