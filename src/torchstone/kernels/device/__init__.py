"""Compiling for a GPU and running there."""
