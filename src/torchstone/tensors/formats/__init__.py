"""Number formats a tensor can be stored in, one file each; put a file here and it is measured."""

from torchstone.tensors.formats._format import Format, all_formats, find_formats
from torchstone.tensors.formats._granularity import GRANULARITIES, GRANULARITY_NAMES
from torchstone.tensors.formats._quantize import Quantized, quantize
from torchstone.tensors.formats._rounding import round_to_format

__all__ = [
    "GRANULARITIES",
    "GRANULARITY_NAMES",
    "Format",
    "Quantized",
    "all_formats",
    "find_formats",
    "quantize",
    "round_to_format",
]
