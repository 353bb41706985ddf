import os
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy


def main(make_model, loader):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = make_model().cuda()
    model = FSDP(model, auto_wrap_policy=size_based_auto_wrap_policy, device_id=local_rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    model.train()
    for step, batch in enumerate(loader):
        ids = batch.cuda(non_blocking=True)
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        if local_rank == 0 and step % 10 == 0:
            print(step, loss.item())
    dist.destroy_process_group()
