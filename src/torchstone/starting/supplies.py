"""What is supplied in the place of what is missing. Each is an assumption that the report lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class SearchPath:
    """A folder of the project from which its own modules are imported."""

    kind: ClassVar[str] = "search-path"
    folder: str
    module: str

    def say(self) -> Text:
        return Text(
            f"`{self.module}` is imported from {self.folder} of the project (as with PYTHONPATH)",
            f"从项目的 {self.folder} 导入 `{self.module}`（相当于设置 PYTHONPATH）",
        )


@dataclass(frozen=True, slots=True)
class StandIn:
    """A recording stand-in for a package that is not installed."""

    kind: ClassVar[str] = "stand-in"
    package: str

    def say(self) -> Text:
        return Text(
            f"the package {self.package} is not installed: a stand-in that does nothing",
            f"未安装软件包 {self.package}：使用不做任何事的替身",
        )


@dataclass(frozen=True, slots=True)
class OldName:
    """A name of an older version, by its successor."""

    kind: ClassVar[str] = "old-name"
    module: str
    name: str
    successor: str
    """`module:name`."""

    def say(self) -> Text:
        return Text(
            f"{self.module}.{self.name} of an older version: {self.successor.replace(':', '.')}",
            f"旧版本的 {self.module}.{self.name}：以 {self.successor.replace(':', '.')} 代替",
        )


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file with made contents, seen by the program only."""

    kind: ClassVar[str] = "made-file"
    path: str
    form: str
    """What it holds: the name of a maker, with its settings after a colon."""

    def say(self) -> Text:
        return Text(
            f"{self.path} is missing: made data ({self.form})",
            f"缺少 {self.path}：使用生成的数据（{self.form}）",
        )


@dataclass(frozen=True, slots=True)
class MadeDataset:
    """A dataset of torchvision with made images of its shape and classes."""

    kind: ClassVar[str] = "made-dataset"
    name: str

    def say(self) -> Text:
        return Text(
            f"torchvision.datasets.{self.name} is not on this machine: made images of its shape",
            f"本机没有 torchvision.datasets.{self.name}：使用相同形状的生成图像",
        )


@dataclass(frozen=True, slots=True)
class MadePretrained:
    """Models and tokenizers of transformers from the configuration of their kind."""

    kind: ClassVar[str] = "made-pretrained"
    name: str

    def say(self) -> Text:
        return Text(
            f"{self.name} is not on this machine: the architecture that its name says, in its default "
            "size, with new weights and a tokenizer of bytes",
            f"本机没有 {self.name}：使用其名称所示的架构（默认大小）、新权重与字节级分词器",
        )


Supply = SearchPath | StandIn | OldName | MadeFile | MadeDataset | MadePretrained
