"""Functions of numpy, with the dtype rules of numpy."""
