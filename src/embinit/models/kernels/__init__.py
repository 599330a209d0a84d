"""CUDA kernels in Triton, and the PyTorch functions that call them."""
