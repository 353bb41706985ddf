"""The options of `torchstone review`."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.conductor.jobs.job import DEPTHS
from torchstone.core.options import option


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """What is reviewed, how deep, and who leads."""

    path: str = option(
        ".", "the project; its scripts and tests are executed in a sandboxed copy",
        "项目文件夹；其脚本与测试将在隔离的副本中真实运行",
        positional=True, config=False, metavar="PATH",
    )  # fmt: skip
    goal: tuple[str, ...] = option(
        (), "correctness, performance, maintainability; all of them by default",
        "correctness、performance、maintainability；默认全部", metavar="GOAL",
    )  # fmt: skip
    depth: str = option(
        "standard", "quick: nothing is run; standard: tests, dry runs, probes; deep: everything",
        "quick：不运行代码；standard：测试、试运行与探针；deep：全部", choices=DEPTHS,
    )  # fmt: skip
    component: str = option(
        "", "only problems below this path of the project", "只列出项目中该路径之下的问题",
        config=False, metavar="PATH",
    )  # fmt: skip
    tools: tuple[str, ...] = option(
        (), "only these tools, by our name or the workflow's (pytea, jaxtype, pyassist, mypy)",
        "只运行这些工具（可用本项目名称或工作流名称：pytea、jaxtype、pyassist、mypy）", metavar="TOOL",
    )  # fmt: skip
    scenario: tuple[str, ...] = option(
        (), "mla, moe, dist-sync, amp; detected by default",
        "mla、moe、dist-sync、amp；默认自动识别", metavar="NAME",
    )  # fmt: skip
    checks: str = option(
        "", "a folder of checks of your own, run on the project and on every change",
        "自行编写的检查所在的文件夹，会对项目及每处修改运行", config=False, metavar="FOLDER",
    )  # fmt: skip
    since: str = option(
        "", "problems on lines changed since this commit; older ones are counted",
        "只列出自该提交以来改动行上的问题；更早的只计数", config=False, metavar="COMMIT",
    )  # fmt: skip
    model: str = option(
        "", "let a language model lead: openai:NAME, anthropic:NAME, http://HOST/v1#NAME",
        "由语言模型主导：openai:名称、anthropic:名称、http://主机/v1#名称", config=False, metavar="MODEL",
    )  # fmt: skip
    max_tokens: int = option(
        200_000, "limit of tokens for the model", "模型可用的 token 数", metavar="TOKENS"
    )
    seconds: float = option(
        240.0, "time limit of one job, in seconds", "单个任务的最长秒数", metavar="SECONDS"
    )
    max_seconds: float = option(
        900.0, "start nothing new after this many seconds", "超过该秒数后不再开始新工作",
        metavar="SECONDS",
    )  # fmt: skip
    rounds: int = option(
        2, "limit of rounds of design and verification", "设计与验证的最多轮数", metavar="N"
    )
    apply: bool = option(
        False, "apply the proven changes to the working tree (`torchstone undo` takes them back)",
        "将已验证的修改写入工作区（可用 `torchstone undo` 撤销）", config=False,
    )  # fmt: skip
    accept: tuple[str, ...] = option(
        (), "with --apply: problems whose model- or agent-written changes you have read and accept",
        "配合 --apply：已阅读并接受其模型或智能体所写修改的问题编号", config=False, metavar="ID",
    )  # fmt: skip
    resume: str = option(
        "", "resume the review in this run folder", "继续该运行文件夹中的评审",
        config=False, metavar="RUN",
    )  # fmt: skip
    prove: str = option(
        "", "run the experiment behind one problem of this review again, without its patch and with it: --prove RUN ID",
        "重新运行该评审中某个问题的实验（无补丁与有补丁）：--prove RUN ID", config=False, metavar="RUN",
    )  # fmt: skip
    no_cache: bool = option(
        False, "neither read nor write cached results", "不读取也不写入缓存结果", config=False
    )
    python: str = option(
        "", "run the project's scripts with this environment: its interpreter, or its folder; by default the "
        "activated one or the project's .venv",
        "用该环境运行项目脚本：其解释器或文件夹；默认使用已激活的环境或项目的 .venv", config=False, metavar="PATH",
    )  # fmt: skip
    build_env: bool = option(
        False, "create an environment from the project's requirements first: wheels only, outside its folder",
        "先按项目的依赖创建环境：只用 wheel，位于项目文件夹之外", config=False,
    )  # fmt: skip
    allow_unconfined: bool = option(
        False, "run the project's code even where this system has no sandbox for it",
        "即使本系统无法隔离，也运行项目代码", config=False,
    )  # fmt: skip
