"""Where a watch attaches to a program: hooks, the parts of a training step, inputs and outputs, ranks."""
