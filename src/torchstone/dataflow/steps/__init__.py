"""Training steps: time waiting for data, in Python and on the device."""
