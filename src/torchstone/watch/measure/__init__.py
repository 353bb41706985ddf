"""From what was read to the values of signals: optimizers, their updates, signals."""
