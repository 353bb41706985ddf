import argparse
import os
import torch


def load_checkpoint(model, optimizer, path, device):
    if not os.path.isfile(path):
        return 0
    checkpoint = torch.load(path, map_location=device)  # FAULT: load-without-weights-only
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"]


def save_checkpoint(model, optimizer, epoch, path):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--resume", default="ckpt.pt")
    a = p.parse_args()
    m = torch.nn.Linear(2, 2)
    print(load_checkpoint(m, torch.optim.SGD(m.parameters(), lr=0.1), a.resume, "cpu"))
