"""The gates, one file each: put a file here and it is run, tested and documented."""
