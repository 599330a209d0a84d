"""Speed and memory beside the tools that people use today."""
