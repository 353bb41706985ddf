"""`torchstone doctor`: what is installed, and what each missing part would add."""

from __future__ import annotations

import platform
import shutil
import sys
from dataclasses import dataclass

from torchstone._version import __version__
from torchstone.cli.common import CommonOptions
from torchstone.cli.show import format_for, put, show, use_colour
from torchstone.core.files import cache_folder
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.lint.catalog import all_rules
from torchstone.lint.outside._process import program
from torchstone.render.style import Style

HELP = Text(
    en="what is installed here, and what each missing part would add",
    zh="本机已安装的部件，以及缺少的部件能带来什么",
)
FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class Part:
    """An optional part: how to get it, and what it adds."""

    name: str
    get: str
    adds: Text


def _extra(name: str) -> str:
    return f'pip install "torchstone[{name}]"'


_PACKAGES = (
    Part("pathspec", "pip install pathspec",
         Text("honouring .gitignore in folders", "遵守文件夹中的 .gitignore")),
    Part("torch", _extra("torch"), Text("cost, watch, kernel, tensor, dryrun, and most of review", "cost、watch、kernel、tensor、dryrun，以及 review 的大部分")),
    Part("numpy", _extra("watch"), Text("watch, and arrays of tensor", "watch，以及 tensor 的数组")),
    Part("transformers", _extra("hf"),
         Text("cost hf:NAME, and the DeepSeek-OCR analyzer", "cost hf:名称，以及 DeepSeek-OCR 分析器")),
    Part("timm", "pip install timm, in an environment of its own (see docs/cost.md)",
         Text("cost timm:NAME", "cost timm:名称")),
    Part("triton", _extra("triton"), Text("kernel verify --impl triton", "kernel verify --impl triton")),
    Part("numba", _extra("numba"), Text("kernel verify --impl numba", "kernel verify --impl numba")),
    Part("openai", _extra("openai"), Text("kernel generate --provider openai", "kernel generate --provider openai")),
    Part("anthropic", _extra("anthropic"),
         Text("kernel generate --provider anthropic", "kernel generate --provider anthropic")),
    Part("Pillow", _extra("image"),
         Text("real images in the DeepSeek-OCR analyzer", "DeepSeek-OCR 分析器使用真实图像")),
    Part("hydra-core", _extra("hydra"),
         Text("hydra settings of the DeepSeek-OCR runner", "DeepSeek-OCR 运行器的 hydra 配置")),
    Part("PyYAML", _extra("yaml"), Text("cost --stages FILE.yaml", "cost --stages FILE.yaml")),
    Part("tensorboard", "pip install tensorboard", Text("watch: curves in TensorBoard", "watch：在 TensorBoard 中查看曲线")),
    Part("wandb", "pip install wandb", Text("watch: curves in Weights & Biases", "watch：在 Weights & Biases 中查看曲线")),
    Part("mlflow", "pip install mlflow", Text("watch: curves in MLflow", "watch：在 MLflow 中查看曲线")),
    Part("pytest", "pip install pytest",
         Text("limits of cost in tests (pytest plugin); a project's tests in review",
              "在测试中限制代价（pytest 插件）；review 运行项目测试")),
    Part("scipy", _extra("flow"), Text("flow plan, flow run", "flow plan、flow run")),
    Part("pygraphviz", _extra("flow"), Text("flow: the graph as SVG", "flow：以 SVG 输出数据流图")),
    Part("opencv-python-headless", "pip install opencv-python-headless",
         Text("flow: cv2 operators moved to a device", "flow：把 cv2 算子迁移到设备")),
    Part("librosa", "pip install librosa", Text("flow: audio operators of librosa", "flow：librosa 音频算子")),
    Part("ray", _extra("ray"), Text("flow export --ray", "flow export --ray")),
    Part("jaxtyping", _extra("jaxtyping"),
         Text("dryrun: shape annotations checked and written", "dryrun：检查并生成形状标注")),
    Part("gguf", _extra("gguf"), Text("tensor FILE.gguf with quantised tensors", "tensor：读取量化的 .gguf 文件")),
    Part("accelerate", "pip install accelerate",
         Text("dryrun and review of programs that use it", "dryrun 与 review 运行使用 accelerate 的程序")),
    Part("mcp", _extra("mcp"), Text("torchstone mcp, for agents", "torchstone mcp，供智能体使用")),
    Part("pygls", _extra("lsp"), Text("torchstone lsp, for editors", "torchstone lsp，供编辑器使用")),
)  # fmt: skip
_PROGRAMS = (
    Part("git", "install git", Text("check --since COMMIT", "check --since 提交")),
    Part("mypy", "pip install mypy", Text("check --with mypy, review", "check --with mypy、review")),
    Part("ruff", "pip install ruff", Text("check --with ruff, review", "check --with ruff、review")),
    Part("cc", "install gcc or clang",
         Text("kernels in C, and a faster watch", "C 内核，以及更快的 watch")),
    Part("unshare", "install util-linux",
         Text("kernels and reviewed projects run without a network", "内核与被评审的项目在无网络的环境中运行")),
)  # fmt: skip
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")


def _version(package: str) -> str | None:
    """A package's version without loading it: torch alone would take seconds."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def report() -> Report:
    """What there is as the environment, what there is not as gaps."""
    environment = {
        "torchstone": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "encoding": sys.stdout.encoding or "",
        "cache": str(cache_folder()),
    }
    gaps: list[Gap] = []
    for part in _PACKAGES:
        version = _version(part.name)
        if version:
            environment[part.name] = version
        else:
            gaps.append(_gap(part))
    for part in _PROGRAMS:
        found = program(part.name)
        if found:
            environment[part.name] = found[0]
        else:
            gaps.append(_gap(part))
    browser = next((path for name in _BROWSERS if (path := shutil.which(name))), "")
    if browser:
        environment["browser"] = browser
    else:
        wanted = Text("reading HTML reports on this machine", "在本机查看 HTML 报告")
        gaps.append(_gap(Part("browser", "install chromium or firefox", wanted)))
    count = Measure(
        "rules",
        len(all_rules()),
        "rules",
        Text("files in the rules folder", "规则文件夹中的文件数"),
        Text("rules", "规则"),
        tool="doctor",
    )
    return Report("doctor", (), (count,), tuple(gaps), environment)


def _gap(part: Part) -> Gap:
    adds = part.adds
    reason = Text(f"not installed; it would add: {adds.en}", f"未安装；安装后可用：{adds.zh}")
    return Gap(part.name, Message("doctor.missing", reason), part.get, Location(), tool="doctor")


def run(options: None, common: CommonOptions) -> int:
    made = report()
    if format_for(made, common) != "text":
        show(made, common)
        return 0
    style = Style(lang=common.lang, colour=use_colour(common.colour) and not common.output)
    width = max(map(len, made.environment))
    lines = [
        f"{style.paint('✓', 'green')} {key:<{width}}  {value}"
        for key, value in made.environment.items()
    ]
    lines.append(f"{style.paint('✓', 'green')} {'rules':<{width}}  {len(all_rules())}")
    for gap in made.gaps:
        lines.append(
            f"{style.paint('–', 'yellow')} {gap.subject:<{width}}  {gap.reason.say(common.lang)}"
        )
        lines.append(f"  {'':<{width}}  -> {gap.close}")
    put("\n".join(lines) + "\n", common)
    return 0
