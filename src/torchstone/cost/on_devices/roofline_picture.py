"""The roofline as a picture and as a table."""

from __future__ import annotations

from torchstone.core.pictures import Plot, Series, Table
from torchstone.core.text import Text
from torchstone.cost.on_devices.roofline_time import COMPUTE, LAUNCH, MEMORY, Roofline

_OPERATORS = 5


def roofline_plot(roofline: Roofline, dtype: str, operators: int = _OPERATORS) -> Plot:
    """The roof of a device for one number format, and the operators that take most time under it."""
    device = roofline.device
    peak, ridge = device.peak_flops(dtype), device.ridge(dtype)
    points = [
        (name, item.intensity, item.flops_per_second)
        for name, item in sorted(roofline.by_operator().items(), key=lambda pair: -pair[1].seconds)
        if item.flops_per_second and item.intensity != float("inf")
    ][:operators]
    low = min([ridge / 100, *(x for _, x, _ in points)])
    high = max([ridge * 10, *(x for _, x, _ in points)])
    roof = [x for x in (low, ridge, high) if x > 0]
    series = [
        Series(
            name=Text(f"roof of {device.title}, {dtype}", f"{device.title} 的屋顶线，{dtype}"),
            x=tuple(roof),
            y=tuple(min(peak, x * device.memory_bytes_per_second) for x in roof),
            unit="FLOP/s",
            how=device.cited(),
            x_name="FLOP/B",
            marks=(ridge,),
        )
    ]
    series += [
        Series(name, (x,), (y,), "FLOP/s", Text("modelled", "模型估算"), x_name="FLOP/B")
        for name, x, y in points
    ]
    return Plot(
        name=Text(f"Roofline of {device.title}", f"{device.title} 的屋顶线模型"),
        series=tuple(series),
        x_name="FLOP/B",
        y_name="FLOP/s",
        log_x=True,
        log_y=True,
    )


_COLUMNS = (
    Text("operator", "算子"),
    Text("calls", "调用"),
    Text("time", "时间"),
    Text("bound", "受限于"),
    Text("intensity", "计算强度"),
    Text("% of peak", "峰值占比 %"),
)
_BOUNDS = {
    COMPUTE: Text("compute", "计算"),
    MEMORY: Text("memory", "内存"),
    LAUNCH: Text("launch", "启动"),
    "": Text("", ""),
}


def roofline_table(roofline: Roofline, rows: int = 20) -> Table:
    """The operators that take most time and what holds them up."""
    slowest = sorted(roofline.by_operator().items(), key=lambda pair: -pair[1].seconds)[:rows]
    return Table(
        name=Text(
            f"Time by operator on {roofline.device.title}",
            f"{roofline.device.title} 上各算子的时间",
        ),
        columns=_COLUMNS,
        units=("", "", "s", "", "FLOP/B", ""),
        rows=tuple(
            (
                name,
                item.work.calls,
                item.seconds,
                _BOUNDS[item.bound],
                item.intensity if item.work.bytes else None,
                round(100 * item.achieved, 2),
            )
            for name, item in slowest
        ),
        how=roofline.assumed,
    )
