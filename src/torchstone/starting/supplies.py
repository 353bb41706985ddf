"""What is supplied in the place of what is missing. Each is an assumption that the report lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torchstone.core.text import Text
from torchstone.starting.cuts.forms import Leaf


@dataclass(frozen=True, slots=True)
class SearchPath:
    """A folder of the project from which its own modules are imported."""

    kind: ClassVar[str] = "search-path"
    folder: str
    module: str
    comes_first: bool = False
    """Another folder has a module of the same name."""

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
    for_libraries: bool = False
    """Installed libraries see it too: one of them cannot be imported without the package."""
    is_broken: bool = False
    """It is installed, and cannot be imported."""

    def say(self) -> Text:
        if self.is_broken:
            return Text(
                f"the package {self.package} cannot be imported here: a stand-in that does nothing",
                f"此处无法导入软件包 {self.package}：使用不做任何事的替身",
            )
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
class MadeVersion:
    """A module with the version of the project, which its installation would have written."""

    kind: ClassVar[str] = "made-version"
    module: str

    def say(self) -> Text:
        return Text(
            f"`{self.module}` is written when the project is installed: a made one (0.0.0)",
            f"`{self.module}` 在安装项目时才生成：以生成的模块代替（0.0.0）",
        )


@dataclass(frozen=True, slots=True)
class PretendedVersion:
    """The version on which the program insists, said by a package of another one."""

    kind: ClassVar[str] = "pretended-version"
    package: str
    version: str

    def say(self) -> Text:
        return Text(
            f"the program insists on {self.package} {self.version}: the installed one says that it is that",
            f"程序要求 {self.package} {self.version}：已安装的版本以此版本号自称",
        )


@dataclass(frozen=True, slots=True)
class OlderDataclasses:
    """Fields whose default is an object that may be changed, as Python accepted them before 3.11."""

    kind: ClassVar[str] = "older-dataclasses"

    def say(self) -> Text:
        return Text(
            "fields of dataclasses may have changeable objects as defaults, as before Python 3.11",
            "数据类字段可以使用可变对象作为默认值（Python 3.11 之前的行为）",
        )


@dataclass(frozen=True, slots=True)
class OlderTorchBehaviour:
    """What torch did by itself before it asked for it."""

    kind: ClassVar[str] = "older-torch"
    what: str

    def say(self) -> Text:
        return Text(
            f"{_OLDER_TORCH[self.what][0]}, as in older versions of torch",
            f"{_OLDER_TORCH[self.what][1]}（torch 旧版本的行为）",
        )


_OLDER_TORCH = {
    "stft": ("torch.stft gives real numbers by default", "torch.stft 默认返回实数"),
    "verbose": ("schedules take `verbose`", "学习率调度接受 `verbose`"),
}


@dataclass(frozen=True, slots=True)
class PlainPackage:
    """A plain implementation of a package that is not to be had, or cannot be loaded here."""

    kind: ClassVar[str] = "plain-package"
    package: str

    def say(self) -> Text:
        return Text(
            f"the package {self.package} cannot be used here: a plain implementation of its interface",
            f"此处无法使用软件包 {self.package}：使用其接口的简易实现",
        )


@dataclass(frozen=True, slots=True)
class DroppedKeyword:
    """A keyword that the installed version of a package does not take any more."""

    kind: ClassVar[str] = "dropped-keyword"
    module: str
    function: str
    """Dotted name in the module: a function, or a class."""
    keyword: str

    def say(self) -> Text:
        return Text(
            f"{self.module}.{self.function} of the installed version has no `{self.keyword}`: left out",
            f"已安装版本的 {self.module}.{self.function} 没有 `{self.keyword}`：已略去",
        )


@dataclass(frozen=True, slots=True)
class MadeResource:
    """Datasets of the hub, encodings and language models that would be fetched."""

    kind: ClassVar[str] = "made-resource"
    package: str
    columns: tuple[str, ...] = ()
    """Of made datasets: those that the program names."""

    def say(self) -> Text:
        return Text(
            f"what {self.package} would fetch is made: {_RESOURCES[self.package][0]}",
            f"{self.package} 需要下载的内容以生成数据代替：{_RESOURCES[self.package][1]}",
        )


_RESOURCES = {
    "datasets": ("tables with the columns that the program names", "含程序所用列名的表"),
    "tiktoken": ("an encoding of bytes", "字节级编码"),
    "spacy": ("a blank pipeline of the language", "该语言的空白流水线"),
    "nltk": ("words between spaces", "以空格分词"),
}


@dataclass(frozen=True, slots=True)
class NameStandIn:
    """A recording stand-in for a name that the installed version of a package does not have."""

    kind: ClassVar[str] = "name-stand-in"
    module: str
    name: str

    def say(self) -> Text:
        return Text(
            f"{self.module}.{self.name} is not in the installed version: a stand-in that does nothing",
            f"已安装版本中没有 {self.module}.{self.name}：使用不做任何事的替身",
        )


@dataclass(frozen=True, slots=True)
class Arguments:
    """Words that were added to the command line."""

    kind: ClassVar[str] = "arguments"
    words: tuple[str, ...]

    @property
    def is_guessed(self) -> bool:
        """Whether a text was chosen that only its author knows."""
        return any(word[:1] != "-" and not word.replace(".", "").isdigit() for word in self.words)

    def say(self) -> Text:
        words = " ".join(self.words)
        return Text(f"started with {words}, which it insists on", f"启动时加上其必需的参数 {words}")


@dataclass(frozen=True, slots=True)
class SmallBatches:
    """Batches of a few samples, loaded in the process itself, so that a step comes within the time of a run."""

    kind: ClassVar[str] = "small-batches"
    count: int

    def say(self) -> Text:
        return Text(
            f"no step was made in time: batches of at most {self.count} samples, without workers",
            f"未能在时限内完成一次更新：每批至多 {self.count} 个样本，且不使用 worker",
        )


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder that the program is started in: its relative paths lead to files of the project there."""

    kind: ClassVar[str] = "work-folder"
    folder: str
    path: str

    def say(self) -> Text:
        return Text(
            f"started in {self.folder}, where {self.path} is found",
            f"在 {self.folder} 中启动，{self.path} 位于该处",
        )


@dataclass(frozen=True, slots=True)
class MadeWeights:
    """Weights that would be fetched: modules keep those that they were made with."""

    kind: ClassVar[str] = "made-weights"

    def say(self) -> Text:
        return Text(
            "pretrained weights would be fetched: new weights instead",
            "预训练权重需要下载：使用新权重代替",
        )


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file with made contents, seen by the program only."""

    kind: ClassVar[str] = "made-file"
    path: str
    form: str
    """What it holds: the name of a maker, with its settings after a colon."""
    content: str = ""
    """The value as JSON, where the code shows its structure."""

    def say(self) -> Text:
        kind = self.form.partition(":")[0]
        return Text(
            f"{self.path} is missing: made data ({kind})",
            f"缺少 {self.path}：使用生成的数据（{kind}）",
        )


@dataclass(frozen=True, slots=True)
class MadeDataset:
    """A dataset of torchvision with made images of its shape and classes."""

    kind: ClassVar[str] = "made-dataset"
    name: str
    as_many: bool = False
    """As many samples as the real one has, where that is known: the program counts on it."""

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


@dataclass(frozen=True, slots=True)
class DeclaredOperators:
    """Native operators of a package by name only: it can be imported, and they cannot be called."""

    kind: ClassVar[str] = "declared-operators"
    package: str

    def say(self) -> Text:
        return Text(
            f"the native library of {self.package} does not fit this build of torch: without its operators",
            f"{self.package} 的原生库与当前 torch 不匹配：不含其算子",
        )


@dataclass(frozen=True, slots=True)
class MadeInputs:
    """A model of the project that is trained by a script of ours, because none of its own could be run."""

    kind: ClassVar[str] = "made-inputs"
    model: str
    inputs: tuple[str, ...]

    def say(self) -> Text:
        given = ", ".join(self.inputs)
        return Text(
            f"no script of the project could be run: {self.model} is called with made inputs ({given})",
            f"项目中没有可运行的脚本：以生成的输入（{given}）调用 {self.model}",
        )


@dataclass(frozen=True, slots=True)
class MadeValues:
    """Values in the place of a dataset or a function that reads what is missing."""

    kind: ClassVar[str] = "made-values"
    path: str
    scope: str
    is_dataset: bool
    leaves: tuple[Leaf, ...]

    def say(self) -> Text:
        forms = "; ".join(
            f"{item.name or '.'.join(step[1:] for step in item.place) or 'value'}: {item.form.say()}"
            for item in self.leaves
            if item.form is not None
        )
        name = f"{self.path}: {self.scope}"
        return Text(
            f"{name} reads what is missing here: made values in its place ({forms})",
            f"{name} 所读取的数据在此缺失：以生成的值代替（{forms}）",
        )


Supply = (
    SearchPath
    | StandIn
    | OldName
    | PretendedVersion
    | MadeVersion
    | OlderDataclasses
    | OlderTorchBehaviour
    | NameStandIn
    | PlainPackage
    | DroppedKeyword
    | MadeResource
    | Arguments
    | SmallBatches
    | WorkFolder
    | MadeFile
    | MadeDataset
    | MadePretrained
    | MadeWeights
    | DeclaredOperators
    | MadeInputs
    | MadeValues
)
