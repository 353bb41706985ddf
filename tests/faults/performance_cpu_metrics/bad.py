import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score


def train_epoch(model, loader, optimizer, device="cuda"):
    model.train()
    preds, golds = [], []
    for batch in loader:
        ids = batch["input_ids"].to(device, non_blocking=True)
        labels = batch["labels"].to(device, non_blocking=True)
        logits = model(ids)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        preds.append(logits.argmax(-1).detach().cpu().numpy())  # FAULT: host-copy-in-step-loop
        golds.append(batch["labels"].numpy())
    return preds, golds


def score(preds, golds):
    return f1_score([i for g in golds for i in g], [i for p in preds for i in p], average="macro")
