"""Walls around code that is not ours: limits of the system, set by the process itself."""
