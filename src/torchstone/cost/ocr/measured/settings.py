"""The settings of a run, from flags or composed with Hydra."""

from __future__ import annotations

import argparse
import importlib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from torchstone.core.errors import ConfigError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.options import Option, option, options_of, unknown
from torchstone.core.text import LANGS, Text
from torchstone.cost.ocr.config import AnalysisConfig

PROGRAM = "python -m torchstone.cost.ocr"
CONF = Path(__file__).parents[1] / "conf"
_SECTION = "static_analysis"
_LARGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Which model is analysed, then timed, and where the results go."""

    model: str = option(
        "small",
        "deepseek-ocr, deepseek-ocr-2, small, or the path of a model folder",
        "deepseek-ocr、deepseek-ocr-2、small，或模型文件夹的路径",
    )
    device: str = option("cpu", "where the timed runs happen", "计时运行所在的设备")
    random_weights: bool = option(
        False,
        "time a model folder without weights with random ones",
        "模型文件夹没有权重时，用随机权重计时",
    )
    dtype: str | None = option(
        None,
        "number format; float32 on the CPU and bfloat16 elsewhere by default",
        "数值格式；默认 CPU 上为 float32，其他设备为 bfloat16",
        choices=("float32", "bfloat16", "float16"),
    )
    repeats: int = option(
        5, "timed runs; 0 for the static report alone", "计时次数；0 表示只做静态报告"
    )
    warmups: int = option(1, "runs before them that do not count", "不计入结果的预热次数")
    new_tokens: int = option(8, "tokens generated in each run", "每次运行生成的 token 数")
    peak: str | None = option(
        None,
        "dense TFLOP/s or the name of a device; measured with matrix products by default",
        "稠密 TFLOP/s 或设备名称；默认用矩阵乘实测",
        metavar="TFLOPS|DEVICE",
    )
    output: str | None = option(
        None, "folder of the run; a new one under runs/ by default",
        "运行结果的文件夹；默认在 runs/ 下新建", metavar="FOLDER",
    )  # fmt: skip
    lang: str = option("en", "language of the reports", "报告的语言", choices=LANGS)
    enabled: bool = option(
        True, "make the static report before the timed runs", "在计时之前生成静态报告",
        flag="--static-analysis",
    )  # fmt: skip
    analysis: AnalysisConfig = AnalysisConfig()


def settings_from_flags(argv: Sequence[str]) -> RunSettings:
    """Flags alone, or over what Hydra composes when overrides or a folder for it are given."""
    parser = _parser()
    parsed = parser.parse_args(list(argv))
    given = {name: value for name, value in vars(parsed).items() if value is not None}
    overrides, folder = given.pop("overrides", []), given.pop("config_dir", None)
    base: dict[str, Any] = {}
    if overrides or folder:
        base = compose(overrides, None if folder is None else Path(folder))
    own = {item.name for item in options_of(RunSettings)}
    section = {**(base.pop(_SECTION, None) or {})}
    for name, value in given.items():
        (base if name in own and name != "enabled" else section)[name] = value
    if "sample_image_path" in given and "use_synthetic_inputs" not in given:
        section["use_synthetic_inputs"] = False  # who names an image wants it
    return settings_from_mapping({**base, _SECTION: section}, PROGRAM)


def settings_from_mapping(values: Mapping[str, Any], where: str) -> RunSettings:
    """The settings of a composed configuration; unknown keys and wrong types are errors."""
    values = dict(values)
    section = values.pop(_SECTION, None) or {}
    if not isinstance(section, Mapping):
        raise _wrong(f"{where}: {_SECTION}", section, Text("a table", "表"))
    section = dict(section)
    enabled = section.pop("enabled", True)
    if not isinstance(enabled, bool):
        raise _wrong(
            f"{where}: {_SECTION}.enabled", enabled, Text("true or false", "true 或 false")
        )
    run = _checked(RunSettings, values, where, {"analysis", "enabled"})
    page = _checked(AnalysisConfig, section, f"{where}: {_SECTION}", set())
    for name in ("repeats", "warmups", "new_tokens"):
        if run.get(name, 0) < 0:
            raise _wrong(f"{where}: {name}", run[name], Text("a number from 0", "不小于 0 的数"))
    return RunSettings(**run, enabled=enabled, analysis=AnalysisConfig(**page))


def compose(overrides: Sequence[str] = (), folder: Path | None = None) -> dict[str, Any]:
    """What Hydra makes of the shipped files, a folder of one's own before them, and overrides."""
    hydra, omegaconf = _hydra()
    yaml: Any = importlib.import_module("yaml")
    where = str(folder or CONF)
    if folder is not None and not folder.is_dir():
        raise _unusable(where, Text("a folder", "文件夹"), "no such folder")
    mistakes = (
        importlib.import_module("hydra.errors").HydraException,
        importlib.import_module("omegaconf.errors").OmegaConfBaseException,
        yaml.YAMLError,
        OSError,
        UnicodeDecodeError,
    )
    try:
        with (
            _primary(folder) as (first, paths),
            hydra.initialize_config_dir(version_base="1.3", config_dir=str(first)),
        ):
            made = hydra.compose("config", overrides=[*paths, *overrides])
        plain = omegaconf.OmegaConf.to_container(made, resolve=True, throw_on_missing=True)
    except mistakes as error:
        said = " ".join(str(error).split())
        raise _unusable(
            where, Text("files that Hydra can compose", "Hydra 能组合的文件"), said
        ) from None
    return dict(plain)


@contextmanager
def _primary(folder: Path | None) -> Iterator[tuple[Path, list[str]]]:
    """The folder with config.yaml alone, and where Hydra looks after it.

    Hydra looks into that folder first; were it the shipped one, a file of the same name in the
    user's folder would never be seen.
    """
    if folder is None:
        yield CONF, []
        return
    own = folder.resolve()
    main = next(path for path in (own / "config.yaml", CONF / "config.yaml") if path.exists())
    # Hydra does not decode a URI: the path stands in it as it is
    places = ", ".join(_quoted(f"file://{path}") for path in (own, CONF))
    with TemporaryDirectory() as made:
        (Path(made) / "config.yaml").write_bytes(read_regular(main, _LARGEST))
        yield Path(made), [f"hydra.searchpath=[{places}]"]


def _hydra() -> tuple[Any, Any]:
    try:
        return importlib.import_module("hydra"), importlib.import_module("omegaconf")
    except ImportError as error:
        raise UsageError(
            PROGRAM,
            str(error),
            Text("the package hydra-core, for overrides", "用于覆盖配置的 hydra-core 包"),
            Text(
                "run `pip install 'torchstone[hydra]'`, or use flags only",
                "请运行 `pip install 'torchstone[hydra]'`，或只使用命令行参数",
            ),
        ) from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


def _unusable(where: str, expected: Text, given: str) -> ConfigError:
    return ConfigError(
        where,
        given,
        expected,
        Text("compare with conf/ of torchstone.cost.ocr", "请对照 torchstone.cost.ocr 的 conf/"),
    )


def _checked(cls: type, values: Mapping[str, Any], where: str, without: set[str]) -> dict[str, Any]:
    known = {item.name: item for item in options_of(cls) if item.name not in without}
    for name, value in values.items():
        if name not in known:
            raise unknown(where, str(name), list(known), ConfigError)
        _check_type(known[name], value, f"{where}: {name}")
    return dict(values)


def _check_type(item: Option, value: Any, where: str) -> None:
    optional = typing.get_origin(item.type) in (typing.Union, types.UnionType)
    if value is None and optional:
        return
    kind = item.scalar
    right = type(value) is kind or (item.name == "peak" and type(value) in (int, float))
    if not right:
        raise _wrong(
            where, value, Text(f"a value of type {kind.__name__}", f"{kind.__name__} 类型的值")
        )
    if item.about.choices and value not in item.about.choices:
        names = ", ".join(item.about.choices)
        raise _wrong(where, value, Text(f"one of {names}", f"{names} 之一"))


def _wrong(where: str, value: object, expected: Text) -> ConfigError:
    todo = Text(f"see `{PROGRAM} --help`", f"参见 `{PROGRAM} --help`")
    return ConfigError(where, repr(value), expected, todo)


class _Parser(argparse.ArgumentParser):
    """argparse whose mistakes are our errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            PROGRAM,
            message,
            Text("its usage", "该命令的用法"),
            Text(f"see `{PROGRAM} --help`", f"参见 `{PROGRAM} --help`"),
        )


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        description="Static report, then timed runs and MFU of each stage, in one folder."
        " 先生成静态报告，再计时并给出各阶段的 MFU，全部写入一个文件夹。",
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],
        help="Hydra overrides, such as static_analysis.image_h=2048 (Hydra 覆盖项)",
    )
    parser.add_argument(
        "--config-dir",
        metavar="FOLDER",
        help="folder with your own Hydra files (自有 Hydra 文件的文件夹)",
    )
    skipped = {"analysis"}
    for cls in (RunSettings, AnalysisConfig):
        for item in options_of(cls):
            if item.name not in skipped:
                _add(parser, item)
    return parser


def _add(parser: argparse.ArgumentParser, item: Option) -> None:
    about = item.about
    text = f"{about.help.en} ({about.help.zh})".replace("%", "%%")
    if item.scalar is bool:
        parser.add_argument(
            item.flag,
            dest=item.name,
            action=argparse.BooleanOptionalAction,
            default=None,
            help=text,
        )
        return
    parser.add_argument(
        item.flag,
        dest=item.name,
        type=item.scalar,
        default=None,
        choices=about.choices or None,
        metavar=None if about.choices else about.metavar or item.key.upper(),
        help=text,
    )
