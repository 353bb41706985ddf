import torch
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class TextDataset(Dataset):
    def __init__(self, texts, labels, tokenizer):
        self.enc = tokenizer(texts, truncation=True, padding=True)
        self.labels = labels

    def __getitem__(self, idx):
        item = {k: torch.tensor(v[idx]) for k, v in self.enc.items()}
        item["labels"] = torch.tensor(self.labels[idx])
        return item

    def __len__(self):
        return len(self.labels)


def collate(items):
    return {k: torch.stack([i[k] for i in items]) for k in items[0]}


def run(model, ds, optim):
    model.to(device).train()
    for batch in DataLoader(ds, 16, shuffle=True, collate_fn=collate, num_workers=2, pin_memory=True):
        optim.zero_grad()
        loss = model(**{k: v.to(device, non_blocking=True) for k, v in batch.items()}).loss
        loss.backward()
        optim.step()
