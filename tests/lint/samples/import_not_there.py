"""More samples of import-not-there."""

GOOD = (
    """\
import torch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .nowhere import Net
""",
    """\
import torch
from . import _C
from .version import __version__
from .messages_pb2 import Request
""",
    """\
import torch
from somewhere_else.models import Net
""",
)
