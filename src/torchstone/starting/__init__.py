"""Gets a project to run: what stopped it, what is supplied in its place, and again."""
