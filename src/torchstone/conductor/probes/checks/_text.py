"""Words that several checks use."""

from __future__ import annotations

from torchstone.core.text import Text

IN_THE_RUN = Text("seen in the project's own run", "取自项目自身的运行")
ON_A_COPY = Text("on a copy of the project's own module", "在项目自身模块的副本上测得")
