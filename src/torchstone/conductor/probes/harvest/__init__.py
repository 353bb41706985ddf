"""A script of the project runs for a few steps on the CPU, and what it does is written down."""
