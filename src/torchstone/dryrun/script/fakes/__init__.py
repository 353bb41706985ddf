"""Fake tensors: who gets one, what is asked of it, and what is answered."""
