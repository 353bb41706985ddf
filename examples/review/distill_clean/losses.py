"""What the student is asked for."""

import torch.nn.functional as F


def soft_loss(student, teacher, temperature):
    """How far the softened predictions are from the teacher's."""
    ours = F.log_softmax(student / temperature, dim=1)
    theirs = F.softmax(teacher / temperature, dim=1)
    return F.kl_div(ours, theirs, reduction="batchmean") * temperature**2


def hint_loss(student, teacher):
    """How far the mapped features are from the teacher's."""
    return F.mse_loss(student, teacher)
