"""Faults of the data."""

import torch

from faults.scene import Scene, fault


@fault("labels-shuffled", origin="mechanism: labels and inputs sorted apart")
def labels_shuffled(scene: Scene) -> None:
    scene.transform = lambda x, y: (x, y.roll(1, 0))


@fault("inputs-unnormalised", origin="mechanism: /255 applied twice or not at all",
       models=("images", "series"))  # fmt: skip
def unnormalised(scene: Scene) -> None:
    scene.transform = lambda x, y: (x * 255, y)


@fault("inputs-zero", origin="mechanism: a loader whose decoding fails silently")
def zeros(scene: Scene) -> None:
    scene.transform = lambda x, y: (torch.zeros_like(x), y)


@fault("stuck-loader", origin="mechanism: next(iter(loader)) inside the loop")
def stuck(scene: Scene) -> None:
    batch = scene.batch()
    scene.batch = lambda: batch


@fault("nan-in-one-batch", origin="PaLM (arXiv 2204.02311) spikes: one batch times one state",
       models=("images", "series"))  # fmt: skip
def nan_batch(scene: Scene) -> None:
    def poison(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if scene.step == 310:
            x = x.clone()
            x[0] = float("nan")
        return x, y

    scene.transform = poison


@fault("one-class-only", origin="mechanism: a sorted data set without shuffling",
       models=("images",))  # fmt: skip
def one_class(scene: Scene) -> None:
    usual = scene.batch

    def sorted_batch() -> tuple[torch.Tensor, torch.Tensor]:
        x, y = usual()
        keep = (y == y[0]).nonzero()[:, 0]
        index = keep[torch.arange(len(y)) % len(keep)]
        return x[index], y[index]

    scene.batch = sorted_batch
