"""A run for other tools: OpenTelemetry spans (GenAI conventions) and Chrome's trace viewer."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from torchstone._version import __version__
from torchstone.trace.record import Record
from torchstone.trace.run import Run

FORMATS = ("otel", "chrome")
_AGENT = {
    "start": "create_agent",
    "agent": "chat",
    "conductor": "chat",
    "verifier": "execute_tool",
    "exit": "invoke_agent",
}


def export(run: Run, form: str) -> str:
    """The run as JSON text in one of `FORMATS`; texts stay behind, only their hashes go along."""
    made = _otel(run) if form == "otel" else _chrome(run)
    return json.dumps(made, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _start(record: Record) -> float:
    return record.time - (record.call.seconds or 0.0)


def _otel(run: Run) -> dict[str, object]:
    spans = []
    for task in run.tasks:
        records = [item for item in run.records if item.task == task]
        trace_id = hashlib.sha256(f"{run.folder.name}/{task}/{records[0].id}".encode()).hexdigest()
        root = records[0].id[16:32]
        spans.append(
            {
                "traceId": trace_id[:32],
                "spanId": root,
                "name": f"invoke_workflow {records[0].op}",
                "kind": 1,
                "startTimeUnixNano": _nanoseconds(min(map(_start, records))),
                "endTimeUnixNano": _nanoseconds(max(item.time for item in records)),
                "attributes": _attributes(
                    {"gen_ai.operation.name": "invoke_workflow", "torchstone.task": task}
                ),
                "status": {},
            }
        )
        spans += [_span(item, trace_id[:32], root) for item in records]
    resource = {"service.name": "torchstone", "service.version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [
                    {"scope": {"name": "torchstone.trace", "version": __version__}, "spans": spans}
                ],
            }
        ]
    }


def _span(record: Record, trace_id: str, root: str) -> dict[str, object]:
    call = record.call
    operation = _AGENT.get(record.role, "chat")
    attributes: dict[str, object] = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": call.model,
        "gen_ai.response.finish_reasons": call.finish_reason,
        "gen_ai.usage.input_tokens": call.input_tokens,
        "gen_ai.usage.output_tokens": call.output_tokens,
        "gen_ai.tool.name": "verifier" if record.role == "verifier" else "",
        "gen_ai.evaluation.score.label": record.verdict,
        "torchstone.step": record.step,
        "torchstone.action": record.action,
        "torchstone.parsed": record.parsed,
        **{f"torchstone.{name}.sha256": kept.sha256 for name, kept in record.texts.items()},
    }
    return {
        "traceId": trace_id,
        "spanId": record.id[:16],
        "parentSpanId": root,
        "name": f"{operation} {call.model or record.action}".strip(),
        "kind": 3,
        "startTimeUnixNano": _nanoseconds(_start(record)),
        "endTimeUnixNano": _nanoseconds(record.time),
        "attributes": _attributes(attributes),
        "status": {} if record.parsed else {"code": 2, "message": "answer could not be read"},
    }


def _nanoseconds(seconds: float) -> str:
    return str(int(seconds * 1e9))


def _attributes(values: dict[str, Any]) -> list[dict[str, object]]:
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [
        {"key": key, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}
        for key, value in values.items()
        if value is not None and value != ""
    ]


def _chrome(run: Run) -> dict[str, object]:
    begin = min((_start(item) for item in run.records), default=0.0)
    lanes = {task: number for number, task in enumerate(run.tasks, 1)}
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": {"name": f"task {task}"}}
        for task, lane in lanes.items()
    ]
    events += [
        {
            "ph": "X",
            "pid": 1,
            "tid": lanes[item.task],
            "name": f"S{item.step:02d} {item.action}",
            "cat": item.role,
            "ts": round((_start(item) - begin) * 1e6, 3),
            "dur": round((item.call.seconds or 0.0) * 1e6, 3),
            "args": {"model": item.call.model, "verdict": item.verdict, "id": item.id},
        }
        for item in run.records
    ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
