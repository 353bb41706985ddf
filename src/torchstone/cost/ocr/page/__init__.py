"""A page: how it is cut into views, and the prompt that it becomes."""
