"""Errors of our own: what surrounds the program failed, and nothing is said about the program."""

from __future__ import annotations


class HarnessError(Exception):
    """Something that a dry run puts around the program does not work here."""
