import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, sampler, local_rank, epochs):
    device = torch.device("cuda", local_rank)
    ddp = DDP(net.to(device), device_ids=[local_rank])
    opt = torch.optim.AdamW(ddp.parameters(), lr=1e-4)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        ddp.train()
        for images, tokens in loader:
            images = images.to(device, non_blocking=True)
            tokens = tokens.to(device, non_blocking=True)
            logits = ddp(images)
            loss = F.cross_entropy(logits, tokens)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            with torch.no_grad():
                ddp.module.logit_scale.clamp_(0, 4.6)


@torch.no_grad()
def features(ddp, x):
    ddp.eval()
    return ddp.module(x)
