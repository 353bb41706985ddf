"""Readers of tensor files, one file each: names and shapes first, bytes when they are needed."""

from torchstone.tensors.files.open_file import open_tensors
from torchstone.tensors.files.stored import StoredTensor

__all__ = ["StoredTensor", "open_tensors"]
