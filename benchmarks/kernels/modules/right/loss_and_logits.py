# problem: modules/problems/loss_and_logits.py
# implementation: torch
# mechanism: logsumexp minus the logit of the label

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.head = torch.nn.Linear(inputs, classes)

    def forward(self, x, label):
        logits = torch.addmm(self.head.bias, x, self.head.weight.t())
        chosen = logits.gather(1, label.unsqueeze(1)).squeeze(1)
        return (logits.logsumexp(1) - chosen).mean(), logits
