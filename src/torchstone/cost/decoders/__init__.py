"""Decoders by formula, and with a cache."""
