"""Processes of the candidate and of the referee, and what passes between them."""
