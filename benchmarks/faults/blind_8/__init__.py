"""Held-out faults and benign changes from public reports, written without sight of a detector."""
