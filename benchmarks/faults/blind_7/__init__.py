"""A seventh set of faults and benign changes, written without sight of the detectors."""
