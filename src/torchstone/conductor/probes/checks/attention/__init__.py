"""Attention and everything that mixes positions."""
