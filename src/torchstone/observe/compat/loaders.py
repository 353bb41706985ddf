"""How a DataLoader fetches and collates."""

from torch.utils.data._utils.collate import default_collate_fn_map
from torch.utils.data._utils.fetch import _IterableDatasetFetcher as IterableFetcher
from torch.utils.data._utils.fetch import _MapDatasetFetcher as MapFetcher

__all__ = ["IterableFetcher", "MapFetcher", "default_collate_fn_map"]
