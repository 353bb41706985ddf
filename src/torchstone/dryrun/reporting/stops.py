"""Programs that stopped for a reason that is no fault of their arithmetic: each is said plainly."""

from __future__ import annotations

from torchstone.core.errors import InputError
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text
from torchstone.dryrun.record import Record, Stop
from torchstone.dryrun.reporting.findings import TOOL
from torchstone.dryrun.script.launch import Outcome

_CLOSE = {
    "network": "fetch the data or weights before, so that the program finds them in its cache",
    "input": "give the answer as an argument of the script",
    "missing-file": "put the file there, or run from the folder in which the script expects it",
    "ranks": "play every rank: torchstone dryrun SCRIPT --world-size N",
    "signal": "leave that line out: a dry run may only signal processes that the program has started",
    "pretend": "replace the operator, or run that part alone on real tensors",
}
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
    "missing-file": Text("a file is missing ({message})", "缺少文件（{message}）"),
    "pretend": Text(
        "fake tensors cannot go on here ({kind}: {message}); before it {done} were checked",
        "虚拟张量无法继续（{kind}：{message}）；此前已检查 {done}",
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
    if stop is not None and stop.exception == "SyntaxError":
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
            f"sys.exit({main.ending_detail}): {tail[0][:200] if tail else ''}",
            Text("a script that runs with these arguments", "可用这些参数运行的脚本"),
            Text("pass its arguments after --", "请在 -- 之后传入脚本参数"),
        )


def gaps_of(record: Record) -> list[Gap]:
    found = (
        [_stopped(record, record.stop)] if record.stop and record.stop.cause != "program" else []
    )
    if record.ending == "exit" and record.ending_detail not in ("0", ""):
        found.append(_exited(record))
    if record.ending == "time":
        found.append(_out_of_time(record))
    if "unconfined" in record.notes:
        found.append(_unconfined())
    return found


def _stopped(record: Record, stop: Stop) -> Gap:
    text = _SAYS.get(stop.cause, Text("{kind}: {message}", "{kind}：{message}"))
    done = (
        f"{record.progress.operators} operators, {record.progress.optimizer_steps} optimizer steps"
    )
    message = stop.message.splitlines()[0] if stop.message else ""
    return Gap(
        stop.place.path or "script",
        Message(
            f"stop-{stop.cause}", text, {"kind": stop.exception, "message": message, "done": done}
        ),
        _CLOSE.get(stop.cause, "see the line"),
        Location(stop.place.path, stop.place.line),
        failed=True,
        tool=TOOL,
    )


def _exited(record: Record) -> Gap:
    place = record.ending_place
    return Gap(
        place.path or "script",
        Message("stop-exit", Text("the program ended itself with code {code}", "程序以代码 {code} 自行结束"),
                {"code": record.ending_detail}),
        "look at what it printed, or give other arguments after --",
        Location(place.path, place.line),
        failed=True,
        tool=TOOL,
    )  # fmt: skip


def _out_of_time(record: Record) -> Gap:
    """It is no failure when training steps were seen: long runs are cut off."""
    place, done = record.ending_place, record.progress
    text = Text(
        "the program was still running after {limit}; until then {steps} optimizer steps and "
        "{backwards} backward passes were checked",
        "程序运行 {limit} 后仍未结束；此前检查了 {steps} 个优化步与 {backwards} 次反向传播",
    )
    given = {
        "limit": record.ending_detail,
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
    )


def _unconfined() -> Gap:
    text = Text(
        "the kernel has no Landlock: writes are kept apart in Python only, native code could still write",
        "内核不支持 Landlock：写入仅在 Python 层隔离，原生代码仍可能写文件",
    )
    return Gap("confinement", Message("unconfined", text), "run on Linux 5.13 or newer", tool=TOOL)


def nothing_left(subject: str, outcome: Outcome) -> Gap:
    """The process is gone without a word."""
    tail = [line for line in outcome.output.strip().splitlines() if line.strip()][-1:] or [""]
    if outcome.killed:
        text = Text("the process did not come back to Python and was killed; it printed last: {tail}",
                    "进程长时间未返回 Python，已被终止；最后输出：{tail}")  # fmt: skip
    else:
        text = Text("the process ended with code {code} before it could report; it printed last: {tail}",
                    "进程以代码 {code} 结束，未能给出报告；最后输出：{tail}")  # fmt: skip
    return Gap(
        subject,
        Message("died", text, {"code": str(outcome.exit_code), "tail": tail[0][:200]}),
        "run the script itself to see more",
        failed=True,
        tool=TOOL,
    )
