"""Watches inside real trainers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn import functional as F

from tests.watch.clocks import STILL
from torchstone.watch.callbacks.accelerate import watch_accelerate

OPTIONS: dict[str, Any] = {"warmup_steps": 10, "folder": False, "clock": STILL}


class _Data(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(8, generator=generator)
        return {"x": x, "labels": (x.sum() > 0).long()}


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.layers(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def test_a_transformers_trainer(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    from torchstone.watch.callbacks.huggingface import WatchCallback

    callback = WatchCallback(**OPTIONS)
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=15, per_device_train_batch_size=8, report_to=[],
        use_cpu=True, save_strategy="no", disable_tqdm=True, gradient_accumulation_steps=2,
    )  # fmt: skip
    Trainer(_Net(), arguments, train_dataset=_Data(), callbacks=[callback]).train()
    watch = callback.watch
    assert watch is not None
    [watched] = watch.optimizers.values()
    assert watched.updates == 15
    assert watched.watched.layers == ("layers.0", "layers.2")
    assert watched.norm > 0
    assert [a.line() for a in watch.alerts] == []


def test_a_lightning_fit(tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    from torchstone.watch.callbacks.lightning import WatchCallback

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = _Net()

        def training_step(self, batch: dict[str, Tensor], index: int) -> Tensor:
            return self.net(**batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    callback = WatchCallback(**OPTIONS)
    trainer = lightning.Trainer(
        max_steps=12, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        callbacks=[callback],
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(_Data(), batch_size=8))
    watch = callback.watch
    assert watch is not None
    [watched] = watch.optimizers.values()
    assert watched.updates == 12
    assert watched.watched.layers == ("net.layers.0", "net.layers.2")
    assert watch.call.step == 13


def test_an_accelerate_loop() -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(
        net := _Net(), torch.optim.SGD(net.parameters(), lr=0.1),
        torch.utils.data.DataLoader(_Data(), batch_size=8),
    )  # fmt: skip
    with watch_accelerate(accelerator, model, optimizer, **OPTIONS) as watch:
        for batch in loader:
            optimizer.zero_grad()
            loss = model(**batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            watch.step(loss, batch)
    [watched] = watch.optimizers.values()
    assert watched.updates == 8
    assert watch.recorder is None


def test_writers_get_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb
    from mlflow import MlflowClient
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from tests.watch.toy import Toy
    from torchstone.watch.writers import MLflow, TensorBoard, WandB

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run = wandb.init(project="torchstone-test", dir=str(tmp_path))
    client = MlflowClient((tmp_path / "mlruns").as_uri())
    experiment = client.create_experiment("toy", (tmp_path / "files").as_uri())
    tracked = client.create_run(experiment)

    def loud(toy: Toy) -> None:
        toy.loss_factor = 100.0

    try:
        writers = (TensorBoard(str(tmp_path / "board")), WandB(run), MLflow(tracked, client))
        Toy().watched(loud, at=80, steps=85, writers=writers)
        assert run.summary["torchstone/grad_norm"] > 0
    finally:
        run.finish()
    found = EventAccumulator(str(tmp_path / "board")).Reload()
    assert len(found.Scalars("torchstone/grad_norm")) == 85
    assert "torchstone/alerts/text_summary" in found.Tags()["tensors"]
    norms = client.get_metric_history(tracked.info.run_id, "torchstone/grad_norm")
    assert [item.step for item in norms] == list(range(1, 86))
    [alerts] = (tmp_path / "files").glob("**/alerts.txt")
    assert "Step 81" in alerts.read_text()
