"""Two runs of a model: a low precision beside its shadow, or two models side by side."""
