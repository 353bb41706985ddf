"""Words that several formats say, in both languages."""

from __future__ import annotations

from torchstone.core.finding import Confidence, Severity
from torchstone.core.fix import Safety
from torchstone.core.text import Text

LEVELS = {
    Severity.HIGH: Text("HIGH", "高"),
    Severity.MEDIUM: Text("MEDIUM", "中"),
    Severity.LOW: Text("LOW", "低"),
}
CONFIDENCE = {
    Confidence.CERTAIN: Text("certain", "确定"),
    Confidence.LIKELY: Text("likely", "很可能"),
    Confidence.POSSIBLE: Text("possible", "可能"),
}
FIX_BADGE = {
    Safety.SAFE: Text("safe fix", "安全修复"),
    Safety.UNSAFE: Text("unsafe fix", "不安全修复"),
    Safety.SHOW: Text("sketch", "仅供参考"),
}
FIX = {
    Safety.SAFE: Text("fix: safe", "可修复：安全"),
    Safety.UNSAFE: Text("fix: unsafe, needs --unsafe-fixes", "可修复：不安全，需 --unsafe-fixes"),
    Safety.SHOW: Text("fix: for reading only", "修复：仅供参考"),
}

MARKS = {"good": "✓", "bad": "✗", "warning": "!", "plain": "–"}
"""How a state is marked: never by colour alone."""
COLOURS = {"good": "green", "bad": "red", "warning": "yellow", "plain": "dim"}
