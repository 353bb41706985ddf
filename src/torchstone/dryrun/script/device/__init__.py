"""The device that answers for CUDA, and what runs on it as it is written."""
