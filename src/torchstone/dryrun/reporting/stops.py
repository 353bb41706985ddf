"""Programs that stopped for a reason that is no fault of their arithmetic: each is said plainly."""

from __future__ import annotations

import signal
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text, words
from torchstone.dryrun.record import Record, Stop
from torchstone.dryrun.reporting.findings import TOOL
from torchstone.dryrun.script.launch import Outcome
from torchstone.starting.obstacles import (
    BrokenCall,
    BrokenPackage,
    EmptyData,
    MissingCommand,
    MissingDataset,
    MissingOperators,
    MissingPretrained,
    MissingResource,
    OtherKeyword,
    OtherVersion,
    StatedVersion,
)
from torchstone.starting.requirements import declared_requirements

_CLOSE = {
    "network": Text(
        "fetch the data or weights before, so that the program finds them in its cache; or give --data",
        "请先下载数据或权重，使程序能在缓存中找到；或使用 --data",
    ),
    "input": Text("give the answer as an argument of the script", "请把答案作为脚本参数传入"),
    "missing-file": Text(
        "put the file there, run from the folder in which the script expects it, or give --data",
        "请放好文件，或在脚本所期望的目录中运行，或使用 --data",
    ),
    "empty-data": Text(
        "put the data there, or describe a sample with --data",
        "请放好数据，或用 --data 描述一个样本",
    ),
    "other-version": Text(
        "run it with the environment of the project: --python PATH",
        "请使用项目自己的环境运行：--python PATH",
    ),
    "stated-version": Text(
        "run it with the environment of the project: --python PATH",
        "请使用项目自己的环境运行：--python PATH",
    ),
    "older-torch": Text(
        "run it with the environment of the project: --python PATH",
        "请使用项目自己的环境运行：--python PATH",
    ),
    "older-python": Text(
        "run it with the environment of the project: --python PATH",
        "请使用项目自己的环境运行：--python PATH",
    ),
    "missing-command": Text("install the command", "请安装该命令"),
    "missing-arguments": Text("pass its arguments after --", "请在 -- 之后传入脚本参数"),
    "missing-operators": Text(
        "install the build of the package that fits this torch", "请安装与当前 torch 匹配的版本"
    ),
    "broken-package": Text(
        "install the build of the package that fits this torch", "请安装与当前 torch 匹配的版本"
    ),
    "other-keyword": Text(
        "run it with the environment of the project: --python PATH",
        "请使用项目自己的环境运行：--python PATH",
    ),
    "library": Text(
        "run it with the environment of the project: --python PATH, or look at the call",
        "请使用项目自己的环境运行：--python PATH，或查看该调用",
    ),
    "missing-weights": Text(
        "fetch the weights before, so that they are found in the cache",
        "请先下载权重，使程序能在缓存中找到",
    ),
    "missing-resource": Text(
        "fetch it before, so that it is found in the cache", "请先下载，使程序能在缓存中找到"
    ),
    "missing-dataset": Text(
        "fetch the dataset before, or describe a sample with --data",
        "请先下载数据集，或用 --data 描述一个样本",
    ),
    "missing-pretrained": Text(
        "fetch the model before, so that it is found in the cache",
        "请先下载模型，使程序能在缓存中找到",
    ),
    "data": Text(
        "leave --data out where the files are there, or leave that line out",
        "若有数据文件，请去掉 --data；或略过该行",
    ),
    "ranks": Text(
        "play every rank: torchstone dryrun SCRIPT --world-size N",
        "模拟每个 rank：torchstone dryrun SCRIPT --world-size N",
    ),
    "signal": Text(
        "leave that line out: a dry run may only signal processes that the program has started",
        "请去掉该行：空跑中只能向程序自己启动的进程发送信号",
    ),
    "harness": Text(
        "report this line to Torchstone; the script itself can be run as usual",
        "请向 Torchstone 报告该行；脚本本身可照常运行",
    ),
    "pretend": Text(
        "replace the operator, or run that part alone on real tensors",
        "请替换该算子，或单独用真实张量运行该部分",
    ),
}
_SEE = Text("see the line", "请查看该行")
_SAYS = {
    "network": Text("the program needs the network ({message})", "程序需要网络（{message}）"),
    "input": Text(
        "the program asks a question on the terminal ({message})", "程序在终端提问（{message}）"
    ),
    "signal": Text(
        "the program signals a process that it has not started ({message})",
        "程序向并非由它启动的进程发送信号（{message}）",
    ),
    "ranks": Text(
        "the program starts its ranks itself ({message}): with one process nothing of them is seen",
        "程序自行启动各个 rank（{message}）：单进程运行看不到它们",
    ),
    "data": Text(
        "the dataset was made without its files, as --data asks, and lacks what they hold ({message})",
        "按 --data 的要求，数据集未读取文件，缺少其中的内容（{message}）",
    ),
    "missing-file": Text("a file is missing ({message})", "缺少文件（{message}）"),
    "empty-data": Text(
        "the dataset has no samples: {looked} is missing or empty ({message})",
        "数据集没有样本：{looked} 不存在或为空（{message}）",
    ),
    "other-version": Text(
        "{package} {installed} is installed and has no {name}{wanted}",
        "已安装的 {package} {installed} 中没有 {name}{wanted_zh}",
    ),
    "stated-version": Text(
        "the program insists on another version of {package} than {installed}",
        "程序要求的 {package} 版本与已安装的 {installed} 不同",
    ),
    "older-torch": Text(
        "the program is written for an older torch ({message})",
        "程序是为旧版 torch 编写的（{message}）",
    ),
    "older-python": Text(
        "the program is written for an older Python ({message})",
        "程序是为旧版 Python 编写的（{message}）",
    ),
    "missing-dataset": Text(
        "torchvision.datasets.{name} is not on this machine ({message})",
        "本机没有 torchvision.datasets.{name}（{message}）",
    ),
    "missing-pretrained": Text(
        "{name} is not on this machine ({message})", "本机没有 {name}（{message}）"
    ),
    "missing-arguments": Text("arguments are missing ({message})", "缺少参数（{message}）"),
    "missing-operators": Text(
        "the native library of {package} does not fit this build of torch ({message})",
        "{package} 的原生库与当前 torch 不匹配（{message}）",
    ),
    "broken-package": Text(
        "the native library of {name} cannot be loaded ({message})",
        "无法加载 {name} 的原生库（{message}）",
    ),
    "other-keyword": Text(
        "{package}.{name} of the installed version {installed} has no `{keyword}`",
        "已安装版本 {installed} 的 {package}.{name} 没有 `{keyword}`",
    ),
    "library": Text(
        "{kind} was raised inside of {package} {installed} ({message}); whether the call or the version is at fault is not known",
        "{package} {installed} 内部抛出 {kind}（{message}）；无法判断是调用有误还是版本不符",
    ),
    "missing-weights": Text(
        "pretrained weights would be fetched ({message})", "需要下载预训练权重（{message}）"
    ),
    "missing-resource": Text(
        "{package} would fetch something ({message})", "{package} 需要下载内容（{message}）"
    ),
    "missing-command": Text(
        "the program starts {name}, which is not installed", "程序要启动 {name}，但系统未安装"
    ),
    "harness": Text(
        "the dry run itself failed, not the program ({kind}: {message})",
        "空跑本身出错，与程序无关（{kind}：{message}）",
    ),
    "pretend": Text(
        "fake tensors cannot go on here ({kind}: {message}); before it {operators} operators and {steps} "
        "optimizer steps were checked",
        "虚拟张量无法继续（{kind}：{message}）；此前已检查 {operators} 个算子、{steps} 个优化步",
    ),
}


def refuse_unusable(subject: str, main: Record | None, output: str) -> None:
    """A script that cannot even start is the user's to repair: exit 2."""
    if main is None:
        return
    stop = main.stop
    if stop is not None and stop.cause == "missing-package":
        raise InputError(
            f"dryrun: {subject} ({stop.place})",
            stop.message,
            Text("packages that are installed", "已安装的软件包"),
            Text("install it in this environment: the script is run with it",
                 "请在当前环境中安装：脚本在此环境中运行"),
        )  # fmt: skip
    if stop is not None and stop.cause == "missing-arguments":
        raise InputError(
            f"dryrun: {subject}",
            stop.message,
            Text("a script that runs with these arguments", "可用这些参数运行的脚本"),
            _CLOSE["missing-arguments"],
        )
    if stop is not None and stop.exception == "SyntaxError" and stop.cause == "program":
        raise InputError(
            f"dryrun: {subject}",
            f"SyntaxError: {stop.message}",
            Text("a Python script", "Python 脚本"),
            Text("correct the line", "请修正该行"),
        )
    if (
        main.ending == "exit"
        and main.ending_detail not in ("0", "")
        and not main.progress.operators
    ):
        tail = [line for line in output.strip().splitlines() if line.strip()][-1:]
        raise InputError(
            f"dryrun: {subject}",
            f"sys.exit({words(main.ending_detail, 'en')}): {tail[0][:200] if tail else ''}",
            Text("a script that runs with these arguments", "可用这些参数运行的脚本"),
            Text("pass its arguments after --", "请在 -- 之后传入脚本参数"),
        )


def gaps_of(record: Record, output: str = "") -> list[Gap]:
    found = (
        [_stopped(record, record.stop)] if record.stop and record.stop.cause != "program" else []
    )
    if record.ending == "exit" and record.ending_detail not in ("0", ""):
        found.append(_exited(record, output))
    if record.ending == "time":
        found.append(_out_of_time(record))
    if "unconfined" in record.notes:
        found.append(_unconfined())
    if "open-network" in record.notes:
        found.append(_open_network())
    return found


def _stopped(record: Record, stop: Stop) -> Gap:
    text = _SAYS.get(stop.cause, Text("{kind}: {message}", "{kind}：{message}"))
    done = record.progress
    given = {
        "kind": stop.exception,
        "message": stop.message.splitlines()[0] if stop.message else "",
        "operators": str(done.operators),
        "steps": str(done.optimizer_steps),
        **_missing(stop),
    }
    close = _CLOSE.get(stop.cause, _SEE)
    return Gap(
        stop.place.path or "script",
        Message(f"stop-{stop.cause}", text, given),
        close.en,
        Location(stop.place.path, stop.place.line),
        failed=True,
        tool=TOOL,
        close_zh=close.zh,
    )


def _missing(stop: Stop) -> dict[str, str]:
    """The fields of an obstacle, as words of a sentence."""
    obstacle = stop.obstacle
    if isinstance(obstacle, EmptyData):
        return {"looked": obstacle.paths[0] if obstacle.paths else "its folder"}
    if isinstance(obstacle, MissingCommand | MissingDataset | MissingPretrained | BrokenPackage):
        return {"name": obstacle.name}
    if isinstance(obstacle, MissingOperators | MissingResource):
        return {"package": obstacle.package}
    if isinstance(obstacle, BrokenCall | StatedVersion):
        return {"package": obstacle.package, "installed": obstacle.installed}
    if isinstance(obstacle, OtherKeyword):
        return {
            name: getattr(obstacle, name) for name in ("package", "name", "keyword", "installed")
        }
    if not isinstance(obstacle, OtherVersion):
        return {}
    top = obstacle.package.partition(".")[0]
    asked = [item for item in declared_requirements(Path.cwd()) if item.name.lower() == top.lower()]
    wanted = asked[0].versions if asked else ""
    return {
        "package": obstacle.package, "installed": obstacle.installed, "name": obstacle.name,
        "wanted": f"; the project asks for {top}{wanted}" if wanted else "",
        "wanted_zh": f"；项目要求 {top}{wanted}" if wanted else "",
    }  # fmt: skip


def _exited(record: Record, output: str) -> Gap:
    """A number is an exit code; text is what the program says on its way out."""
    place, said = record.ending_place, words(record.ending_detail, "en")
    text = Text("the program ended itself with code {code}{printed}",
                "程序以代码 {code} 自行结束{printed_zh}")  # fmt: skip
    if not said.lstrip("-").isdigit():
        text = Text("the program ended itself and says: {code}", "程序自行结束，并给出：{code}")
    return Gap(
        place.path or "script",
        Message("stop-exit", text, {"code": said, **_printed(output)}),
        "give other arguments after --",
        Location(place.path, place.line),
        failed=True,
        tool=TOOL,
        close_zh="请在 -- 之后给出其他参数",
    )


def _printed(output: str) -> dict[str, str]:
    """The last line that the program printed, as the end of a sentence; nothing when there is none."""
    lines = [line for line in output.strip().splitlines() if line.strip()]
    if not lines:
        return {"printed": "", "printed_zh": ""}
    last = lines[-1].strip()[:200]
    return {"printed": f"; it printed last: {last}", "printed_zh": f"；最后输出：{last}"}


def _out_of_time(record: Record) -> Gap:
    """It is no failure when training steps were seen: long runs are cut off."""
    place, done = record.ending_place, record.progress
    text = Text(
        "the program was still running after {limit}; until then {steps} optimizer steps and "
        "{backwards} backward passes were checked",
        "程序运行 {limit} 后仍未结束；此前检查了 {steps} 个优化步与 {backwards} 次反向传播",
    )
    given = {
        "limit": words(record.ending_detail, "en"),
        "steps": str(done.optimizer_steps),
        "backwards": str(done.backwards),
    }
    return Gap(
        place.path or "script",
        Message("stop-time", text, given),
        "give --max-seconds a larger value, or the script smaller arguments after --",
        Location(place.path, place.line),
        failed=not (done.optimizer_steps or done.backwards or done.training_forwards),
        tool=TOOL,
        close_zh="请增大 --max-seconds，或在 -- 之后给脚本更小的参数",
    )


def _unconfined() -> Gap:
    text = Text(
        "the kernel has no Landlock: writes are kept apart in Python only, native code could still write",
        "内核不支持 Landlock：写入仅在 Python 层隔离，原生代码仍可能写文件",
    )
    return Gap("confinement", Message("unconfined", text), "run on Linux 5.13 or newer", tool=TOOL,
               close_zh="请在 Linux 5.13 或更新版本上运行")  # fmt: skip


def _open_network() -> Gap:
    text = Text(
        "this system has neither network namespaces nor seccomp: Python code is kept from the "
        "network, native code and other programs could still reach it",
        "本系统既没有网络命名空间也没有 seccomp：仅阻止 Python 代码访问网络，原生代码与其他程序仍可能访问",
    )
    close = Text("run on Linux with user namespaces", "请在启用用户命名空间的 Linux 上运行")
    return Gap("confinement", Message("open-network", text), close.en, tool=TOOL, close_zh=close.zh)


def nothing_left(subject: str, outcome: Outcome) -> Gap:
    """The process is gone without a word."""
    code = outcome.exit_code
    if outcome.killed:
        text = Text("the process did not come back to Python and was killed{printed}",
                    "进程长时间未返回 Python，已被终止{printed_zh}")  # fmt: skip
    elif code < 0:
        text = Text("the process was ended by the signal {signal} before it could report{printed}",
                    "进程被信号 {signal} 终止，未能给出报告{printed_zh}")  # fmt: skip
    else:
        text = Text("the process ended with code {code} before it could report (os._exit){printed}",
                    "进程以代码 {code} 结束（os._exit），未能给出报告{printed_zh}")  # fmt: skip
    given = {"code": str(code), "signal": _signal_name(-code), **_printed(outcome.output)}
    return Gap(
        subject,
        Message("died", text, given),
        "run the script itself to see more",
        failed=True,
        tool=TOOL,
        close_zh="请直接运行脚本以了解更多",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
