"""Timed runs: their settings, the clock, and how much of a device's peak they used."""
