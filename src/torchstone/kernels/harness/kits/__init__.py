"""One module for each language of kernels."""
