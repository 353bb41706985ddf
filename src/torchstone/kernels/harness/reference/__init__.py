"""What is right: the problem itself, its answers in double precision, and how far rounding takes them."""
