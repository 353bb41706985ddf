"""Settings of a run and what follows from the chosen precision."""
import torch

DEFAULTS = {
    "precision": "fp16",
    "frames": 512,
    "size": 16,
    "patch": 4,
    "classes": 6,
    "dim": 32,
    "depth": 2,
    "heads": 4,
    "dropout": 0.1,
    "remat": True,  # recompute blocks in the backward pass
    "batch": 16,
    "accum": 2,
    "epochs": 3,
    "lr": 2e-3,
    "clip": 1.0,
    "zloss": 1e-4,
    "smoothing": 0.05,
    "ema": 0.98,
    "seed": 0,
    "ckpt": "",
}

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def parse(items):
    cfg = dict(DEFAULTS)
    for item in items:
        key, value = item.split("=", 1)
        if key not in cfg:
            raise SystemExit(f"unknown setting {key}")
        kind = type(cfg[key])
        cfg[key] = value.lower() in ("1", "true") if kind is bool else kind(value)
    if cfg["precision"] not in DTYPES:
        raise SystemExit(f"unknown precision {cfg['precision']}")
    return cfg


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def amp_dtype(cfg):
    return DTYPES[cfg["precision"]]


def autocast(cfg):
    return torch.autocast(device().type, enabled=cfg["precision"] != "fp32")


def grad_scaler(cfg):
    # bf16 has the range of fp32, only fp16 needs scaling
    return torch.amp.GradScaler(device().type, init_scale=2.0**12, enabled=cfg["precision"] == "fp16")
