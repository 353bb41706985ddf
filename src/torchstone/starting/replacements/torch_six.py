"""What `torch._six` held before it was removed."""

from __future__ import annotations

import collections.abc as container_abcs
import queue
from math import inf, nan

string_classes = (str, bytes)
int_classes = int
PY3 = PY37 = True
__all__ = ["PY3", "PY37", "container_abcs", "inf", "int_classes", "nan", "queue", "string_classes"]
