"""Checks that a person, an agent or a model wrote: what they are, how they run, when they count."""
