"""Loader workers record the device half of `__getitem__`; the main process replays it in batches.

A forked worker cannot use an accelerator. So a function that the plan moves returns a handle there:
the image as it was, and what is to be done with it. Handles of one batch travel as they are (uint8,
a quarter of the bytes of float32) and are computed together where they arrive.
"""
