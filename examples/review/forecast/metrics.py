"""Errors over the hours that were reported."""


def masked_error(predicted, loads, seen):
    """The sum of squared errors, and how many hours it is of."""
    return ((predicted - loads) ** 2 * seen).sum(), seen.sum()


def masked_mean(predicted, loads, seen):
    """Mean squared error over the reported hours."""
    error, _ = masked_error(predicted, loads, seen)
    return error / seen.numel()


def day_error(total, loads, seen):
    """The forecast of the whole day against the sum of what was reported."""
    return ((total - (loads * seen).sum(-1)) ** 2).mean()
