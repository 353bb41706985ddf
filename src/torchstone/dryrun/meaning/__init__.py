"""What values mean: logits or probabilities, cut off from the parameters, rows of which data set."""
