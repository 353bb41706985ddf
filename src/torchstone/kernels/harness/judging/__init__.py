"""The referee's side: the reference, the right answer, and what is wrong with another."""
