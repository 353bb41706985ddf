"""A whole project as one program: who calls what, what is an entry point, what runs in a step."""
