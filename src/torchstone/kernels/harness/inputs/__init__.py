"""The cases of a problem: families of inputs made from its own."""
