"""Where people and agents come in: the command line, and later others."""
