"""Configuration files for Hydra; other applications reach them as `pkg://torchstone.cost.ocr.conf`."""
