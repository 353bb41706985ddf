"""Cases whose author had seen neither the detectors nor the other cases, only their names."""
