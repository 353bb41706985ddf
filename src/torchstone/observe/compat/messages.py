"""Sentences of torch that its versions word differently. Loads no torch."""

from __future__ import annotations

_DEVICES = (
    "same device",  # torch 2.10 and newer
    "found two different devices",  # fake tensors of 2.9 and older
)


def is_about_devices(message: str) -> bool:
    """Does torch refuse a call because its tensors are on different devices?"""
    return any(words in message for words in _DEVICES)
