"""Reading a project: what it is made of, and a copy of it to work on."""
