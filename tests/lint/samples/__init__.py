"""Samples of the rules beyond the first of each kind, which stands with the rule."""
