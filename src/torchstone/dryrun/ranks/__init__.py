"""Every rank of a distributed program, run at once and compared."""
