"""Moved calls give what the original gives: compared, certified, and sampled in production."""
