"""Cases of two ranks: real processes under torchrun with DDP over gloo, started by `score.py`."""
