"""Why a call stays with the original, and the edit that would let it move."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.dataflow.migration.proof.certificates import Certificate
from torchstone.dataflow.migration.specification import Case, Refusal

SUBCLASS = Refusal(
    Text(
        "a subclass of ndarray: what the function does is its own to say",
        "ndarray 的子类：函数行为由子类决定",
    ),
    Text("pass numpy.asarray(...) of it", "请传入 numpy.asarray(...)"),
)
RAISING = Refusal(
    Text(
        "numpy is set to raise on overflow or division by zero",
        "numpy 被设为在溢出或除零时抛出异常",
    ),
    Text("leave numpy.seterr at 'warn' or 'ignore'", "请将 numpy.seterr 保持为 'warn' 或 'ignore'"),
)


LAYOUT = Refusal(
    Text(
        "an array that is not laid out row by row: the result would be laid out otherwise, and sums "
        "of it rounded otherwise",
        "数组不是按行存储：结果的内存布局会不同，其求和的舍入也会不同",
    ),
    Text(
        "pass numpy.ascontiguousarray(...) of it, or allow it with --allow-rounding",
        "请传入 numpy.ascontiguousarray(...)，或加 --allow-rounding",
    ),
)


IN_WORKER = Refusal(
    Text(
        "in a worker of a DataLoader, and it cannot be recorded for the main process",
        "位于 DataLoader 工作进程中，且无法记录下来交由主进程计算",
    ),
    Text("call it after the loader, or on a whole image", "请在加载器之后调用，或对整幅图像调用"),
)


def first_line(error: Exception) -> Text:
    text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return Text(text, text)


LEAVE_IT = Text(
    "take the call out of the plan, or report the call if the original accepts it",
    "请将该调用移出计划；若原函数可以执行，请反馈该问题",
)


def within_tolerance(case: Case) -> Refusal:
    return Refusal(
        Text(
            f"within a tolerance, not equal in every bit ({case.name})",
            f"仅在容差内，并非逐位相等（{case.name}）",
        ),
        Text(
            "allow it with --allow-rounding (allow_rounding=True in Python)",
            "如可接受，请加 --allow-rounding（Python 中为 allow_rounding=True）",
        ),
    )


def not_certified(case: Case, found: Certificate) -> Refusal:
    if not found.calls:
        return Refusal(
            Text(
                f"not proven: the entry has no sample of this kind of call ({case.name})",
                f"未经证明：该条目没有此类调用的样本（{case.name}）",
            ),
            Text("leave the call on the CPU", "请将该调用保留在 CPU 上"),
        )
    reason = found.reason
    return Refusal(
        Text(
            f"not equal to the original on this machine ({case.name}: {reason})",
            f"在本机上与原函数结果不一致（{case.name}：{reason}）",
        ),
        Text("leave the call on the CPU", "请将该调用保留在 CPU 上"),
    )


def quarantined(case: Case, reason: str) -> Refusal:
    return Refusal(
        Text(
            f"quarantined: a verified call differed ({case.name}: {reason})",
            f"已隔离：抽检调用的结果不一致（{case.name}：{reason}）",
        ),
        Text("leave the call on the CPU", "请将该调用保留在 CPU 上"),
    )
