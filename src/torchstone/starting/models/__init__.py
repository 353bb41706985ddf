"""Models of a project that can be built and called with made inputs, where none of its scripts can be run.

`discovery` reads which classes there are and how the project makes them; `recipes` tries, in the process that is
allowed to run the project, until a model is built and its `forward` accepts what it is given; `script` writes
that down as a training script, which then runs like any other.
"""
