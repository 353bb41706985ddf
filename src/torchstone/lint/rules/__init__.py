"""One rule, one file: put it here and it is found, tested, documented and listed."""
