"""The whole review as one Report: its first screen, and everything behind it."""
