import torch


def accuracy(logits, labels):
    pred = logits.argmax(dim=-1)
    correct = (pred == labels).float().mean()
    return correct


def token_accuracy(logits, labels):
    pred = logits.argmax(dim=-1)
    mask = labels != -100
    return (pred[mask] == labels[mask]).mean()  # FAULT: mean-of-integers


@torch.no_grad()
def validate(model, loader):
    model.eval()
    accs = []
    for x, y in loader:
        logits = model(x)
        accs.append(token_accuracy(logits, y))
    lengths = torch.randint(0, 10, (32,))
    print("mean length", lengths.float().mean(), lengths.sum())
    return torch.stack(accs).mean()
