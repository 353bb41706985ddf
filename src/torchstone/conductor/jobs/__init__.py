"""One tool on one part of a project, in a process of its own."""
