# problem: mla_absorbed
# implementation: torch
# mechanism: the other order: keys and values come up from the latent first

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, up_k, c, up_v):
        keys = torch.einsum("hdl,pl->hpd", up_k, c)
        values = torch.einsum("pl,hld->hpd", c, up_v)
        scores = torch.einsum("hqd,hpd->hqp", q, keys) * q.shape[-1] ** -0.5
        return torch.einsum("hqp,hpd->hqd", scores.softmax(dim=-1), values)
