"""More samples of load-without-map-location."""

GOOD = (
    """\
import torch

def main(model, path):
    model.load_state_dict(torch.load(path, weights_only=True))
""",
    """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
features = torch.load("features.pt", weights_only=True)
""",
    """\
import torch
import torch.distributed as dist

def main(model, path):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        model.load_state_dict(torch.load(path, weights_only=True))
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel

def main(model, args):
    if args.gpu is None:
        checkpoint = torch.load(args.resume, weights_only=True)
    else:
        checkpoint = torch.load(args.resume, weights_only=True, map_location=f"cuda:{args.gpu}")
    model = DistributedDataParallel(model)
    model.load_state_dict(checkpoint)
""",
    """\
import torch

def test_of(model, name):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.save(model.state_dict(), name + ".pt")
    model.load_state_dict(torch.load(name + ".pt", weights_only=True))
    return model.to(device)
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel

def main(model, folder, fetch, rank):
    model = DistributedDataParallel(model)
    remote = f"{folder}/model_rank_{rank}.pt"
    local = fetch(remote)
    model.load_state_dict(torch.load(local, weights_only=True))
""",
    """\
import torch

def main(model, path):
    if torch.cuda.is_available():
        device = "cuda"
    else:
        raise RuntimeError("a GPU is needed")
    model.load_state_dict(torch.load(path, weights_only=True))
    return model.to(device)
""",
)
