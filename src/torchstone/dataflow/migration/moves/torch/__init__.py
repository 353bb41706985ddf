"""Functions of torch: their arguments are moved, the function stays."""
