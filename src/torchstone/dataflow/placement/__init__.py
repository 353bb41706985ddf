"""Folded, partitioned and placed on devices."""
