import torch
from model import Generator


def load_generator(path, device):
    state = torch.load(path, map_location=device, weights_only=False)  # FAULT: full-pickle-load
    net = Generator().to(device)
    net.load_state_dict(state)
    return net.eval()


@torch.inference_mode()
def sample(net, n, device):
    z = torch.randn(n, 100, device=device)
    return net(z).clamp(-1, 1)


if __name__ == "__main__":
    net = load_generator("g.pt", "cpu")
    print(sample(net, 4, "cpu").shape)
