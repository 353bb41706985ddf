"""Fixes that look right and are wrong: none of them may be called proven."""
