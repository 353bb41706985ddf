"""Faults of training, planted one at a time, and benign changes that must stay silent."""
