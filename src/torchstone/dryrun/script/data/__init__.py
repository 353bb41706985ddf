"""Data and files of a program: batches, samples that are given, checkpoints."""
