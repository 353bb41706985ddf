import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torchvision.models import resnet50


def finetune(loader, sampler, rank, epochs, freeze=True):
    torch.cuda.set_device(rank)
    model = resnet50(num_classes=10).cuda()
    model = DDP(model, device_ids=[rank])
    if freeze:
        for p in model.module.layer1.parameters():
            p.requires_grad = False  # FAULT: changed-after-ddp
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.SGD(params, lr=0.01)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            opt.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
    return model.module
