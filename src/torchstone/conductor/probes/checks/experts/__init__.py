"""Routing of tokens to experts."""
