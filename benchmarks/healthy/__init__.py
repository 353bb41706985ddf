"""Ordinary healthy trainings, on which a monitor should stay quiet."""
