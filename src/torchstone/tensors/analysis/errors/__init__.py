"""What formats and reductions do to the values of a tensor."""
