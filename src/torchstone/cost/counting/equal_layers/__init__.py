"""Layers that are the same run twice and stand for the others."""
