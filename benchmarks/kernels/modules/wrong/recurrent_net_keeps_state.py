# problem: modules/problems/recurrent_net.py
# implementation: torch
# mechanism: starts from the state of the last call
# origin: mechanism: starts from the state of the last call

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.rnn = torch.nn.RNN(inputs, hidden, batch_first=True)
        self.kept = None

    def forward(self, x):
        if self.kept is not None and self.kept.shape[1] != x.shape[0]:
            self.kept = None
        out, last = self.rnn(x, self.kept)
        self.kept = last.detach()
        return out
