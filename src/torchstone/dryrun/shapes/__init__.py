"""Operators that torch refuses, explained: what was given, where it was made, what would work."""
