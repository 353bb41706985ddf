import argparse
import torch

torch.autograd.set_detect_anomaly(True)  # FAULT: anomaly-detection-left-on
torch.backends.cudnn.benchmark = True


def train(model, loader, opt, args):
    for x, y in loader:
        loss = torch.nn.functional.l1_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def debug_once(model, x):
    with torch.autograd.detect_anomaly():
        model(x).sum().backward()
