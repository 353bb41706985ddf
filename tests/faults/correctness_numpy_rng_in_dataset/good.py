import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __init__(self, images, size=224, seed=0):
        self.images = images
        self.size = size
        self.seed = seed

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        h, w = img.shape[:2]
        top = int(torch.randint(0, h - self.size + 1, ()))
        crop = img[top : top + self.size, : self.size]
        return torch.from_numpy(np.ascontiguousarray(crop)).permute(2, 0, 1).float() / 255


def loader(images):
    return DataLoader(Crops(images), batch_size=32, shuffle=True, num_workers=8, pin_memory=True)
