"""This project's own evidence: RESULTS.md and the judging of the advice. Not part of the package."""
