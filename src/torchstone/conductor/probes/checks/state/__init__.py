"""What is saved and restored."""
