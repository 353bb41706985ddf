# problem: batch_norm_inference
# implementation: torch
# mechanism: a thread fills the answer after the call has come back
# origin: DeepReinforce: thread injection; KernelBench (Scaling Intelligence)'s checker lists it

import torch


import threading
import time


class ModelNew(torch.nn.Module):
    def forward(self, x, mean, spread, weight, bias):
        out = torch.empty_like(x)

        def later():
            time.sleep(0.05)
            shape = (1, -1, 1)
            root = torch.sqrt(spread * spread + 1e-5)
            out.copy_((x - mean.view(shape)) / root.view(shape) * weight.view(shape) + bias.view(shape))

        threading.Thread(target=later).start()
        return out
