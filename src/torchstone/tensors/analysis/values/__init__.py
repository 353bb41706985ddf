"""The values of a tensor, wherever it lies: read in chunks, sampled, and counted."""
