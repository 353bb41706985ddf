"""Rules on source: precision, performance, distributed, correctness and upgrade hazards."""
