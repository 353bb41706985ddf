"""Steps, gradients, losses and modes of training."""
