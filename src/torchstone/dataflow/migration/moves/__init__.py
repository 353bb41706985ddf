"""The operators that can move: one file for an operator or a close family, in folders by library.

A file declares `MOVES`. Each entry has the calls it takes (`case`), how they are computed from
tensors, and a random sample of calls by which that is proven equal. Put a file there; there is no
list to edit.
"""
