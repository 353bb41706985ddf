"""The signals, one file each: put a file here, and it is watched, tested and documented."""
