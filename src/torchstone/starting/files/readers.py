"""Packages that read data on behalf of a program."""

from __future__ import annotations

READERS = frozenset(
    "PIL torchvision torchaudio pandas numpy scipy imageio skimage h5py soundfile librosa cv2 tables "
    "audioread pycocotools torchtext lmdb nibabel pydicom".split()
)
"""What other packages look for is their own affair."""


def package_of(file: str) -> str:
    """The installed package that a source file belongs to; empty for one of a project."""
    return file.rpartition("-packages/")[2].partition("/")[0] if "-packages/" in file else ""
