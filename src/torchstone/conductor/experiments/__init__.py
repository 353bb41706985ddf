"""Whatever is shown by a run: two runs that differ in one known way, and a relation that must hold."""
