"""Held-out cases whose author has seen no detector, the third set of that kind."""
