"""Clients of outside SDKs behind the same protocol; each loads its SDK when it is made."""
