# problem: modules/problems/recurrent_net.py
# implementation: torch
# mechanism: inputs of all steps at once, then a loop

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.rnn = torch.nn.RNN(inputs, hidden, batch_first=True)

    def forward(self, x):
        rnn = self.rnn
        given = x @ rnn.weight_ih_l0.t() + (rnn.bias_ih_l0 + rnn.bias_hh_l0)
        h = x.new_zeros(x.shape[0], rnn.weight_hh_l0.shape[0])
        states = []
        for t in range(x.shape[1]):
            h = torch.tanh(given[:, t] + h @ rnn.weight_hh_l0.t())
            states.append(h)
        return torch.stack(states, 1)
