"""Operators of OpenCV; images are (N, C, H, W) inside. The arithmetic is that of OpenCV, to the bit where declared."""
