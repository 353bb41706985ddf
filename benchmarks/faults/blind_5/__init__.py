"""Faults and benign changes chosen from public reports by an author who has not seen the monitor."""
