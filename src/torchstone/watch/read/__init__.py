"""Reading gradients and weights: which steps, on the host in C or on a device."""
