"""What torch.compile would make of the program: graph breaks and recompilations."""
