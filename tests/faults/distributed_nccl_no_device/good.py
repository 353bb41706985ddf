import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def ddp_setup():
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="nccl")


def main(make_model):
    ddp_setup()
    device = torch.device("cuda")
    model = DDP(make_model().to(device))
    opt = torch.optim.Adam(model.parameters())
    for step in range(100):
        x = torch.randn(8, 16, device=device)
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "m.pt")
    dist.barrier()
    dist.destroy_process_group()
