"""What the source of a candidate may say, read from its syntax tree alone."""
