import torch
from torch.utils.data import DataLoader


def fit(model, dataset, opt, loss_fn, epochs=20):
    loader = DataLoader(
        dataset, batch_size=32, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True
    )
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            loss = loss_fn(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()


def cross_validate(make, datasets):
    for ds in datasets:
        loader = DataLoader(ds, batch_size=32, num_workers=4)
        make(loader)
    torch.cuda.empty_cache()
