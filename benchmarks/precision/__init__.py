"""Faults put into real architectures, one at a time, and whether `compare_precision` names their lines."""
