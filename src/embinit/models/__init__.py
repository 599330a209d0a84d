"""Models: transformers whose every parameter has a leading member axis, so that a whole experiment trains as one."""
