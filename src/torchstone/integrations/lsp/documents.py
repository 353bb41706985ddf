"""What `check` says of a file that is open in an editor, and its places in the editor's counting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from torchstone.core.finding import Finding, Severity
from torchstone.core.fix import Edit, Safety
from torchstone.core.lines import split_lines
from torchstone.core.text import Text
from torchstone.lint.catalog import find_rule
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.lint.page import rule_page

_LEVELS = {
    Severity.HIGH: types.DiagnosticSeverity.Error,
    Severity.MEDIUM: types.DiagnosticSeverity.Warning,
    Severity.LOW: types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """One version of a document with its findings."""

    uri: str
    version: int | None
    lines: tuple[str, ...]
    findings: tuple[Finding, ...]

    def position(self, line: int, column: int) -> types.Position:
        """From lines that count from 1 and characters to lines from 0 and units of UTF-16."""
        if not 1 <= line <= len(self.lines):
            return types.Position(max(line - 1, 0), 0)
        text = self.lines[line - 1].rstrip("\r\n")[: max(column, 0)]
        return types.Position(line - 1, len(text.encode("utf-16-le")) // 2)

    def range(self, finding: Finding) -> types.Range:
        """A finding without an end covers the rest of its line."""
        where = finding.location
        end_line, end = where.end_line, where.end_column - 1
        if (end_line, end) <= (where.line, where.column - 1):
            end_line = where.line
            end = len(self.lines[where.line - 1]) if 1 <= where.line <= len(self.lines) else 0
        return types.Range(
            self.position(where.line, where.column - 1), self.position(end_line, end)
        )

    def at(self, asked: types.Range) -> tuple[Finding, ...]:
        """The findings that a range of the editor touches."""
        return tuple(
            finding
            for finding in self.findings
            if (found := self.range(finding)).start <= asked.end and asked.start <= found.end
        )


def check_document(
    uri: str, version: int | None, path: Path | None, text: str, options: CheckOptions
) -> Checked:
    """Check the text as the editor has it; the file on the disk is not read."""
    data = text.encode()
    name = path.as_posix() if path is not None else "untitled.py"
    paths = (name,) if path is not None and path.is_file() else ("-",)
    asked = CheckOptions(
        paths=paths, stdin_name=name, no_cache=True, select=options.select, ignore=options.ignore,
        min_confidence=options.min_confidence, strict=options.strict, torch=options.torch,
        baseline=options.baseline,
    )  # fmt: skip
    report = check(asked, stdin=data, instead={name: data})
    return Checked(uri, version, tuple(split_lines(text)), tuple(report.findings))


def diagnostics(checked: Checked, lang: str) -> list[types.Diagnostic]:
    """What the editor underlines."""
    return [
        types.Diagnostic(
            range=checked.range(finding),
            message=f"{finding.what.say(lang)}\n{finding.remedy.say(lang)}",
            severity=_LEVELS[finding.severity],
            code=finding.rule,
            source="torchstone",
        )
        for finding in checked.findings
    ]


def hover(checked: Checked, position: types.Position, lang: str) -> types.Hover | None:
    """Why it is reported here, and the page of the rule."""
    found = checked.at(types.Range(position, position))
    if not found:
        return None
    pages = [
        f"**{finding.what.say(lang)}**\n\n{finding.why.say(lang)}\n\n"
        f"{rule_page(find_rule(finding.rule), lang)}"
        for finding in found
    ]
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(pages)))


def quick_fixes(checked: Checked, asked: types.Range, lang: str) -> list[types.CodeAction]:
    """The rule's own edit where it has one, and the comment that ignores the finding."""
    actions = []
    for finding in checked.at(asked):
        if (fix := finding.fix) and fix.edits and fix.safety is not Safety.SHOW:
            actions.append(_repair(checked, finding, lang))
        actions.append(_ignore(checked, finding, lang))
    return actions


def _repair(checked: Checked, finding: Finding, lang: str) -> types.CodeAction:
    assert finding.fix is not None
    safe = finding.fix.safety is Safety.SAFE
    title = finding.remedy.say(lang)
    if not safe:
        title += Text(" (may change results)", "（可能改变结果）").get(lang)
    return _action(checked, finding, title, finding.fix.edits, lang, preferred=safe)


def _ignore(checked: Checked, finding: Finding, lang: str) -> types.CodeAction:
    """The comment stands above: at the end of the line it could fall into a string."""
    line = finding.line
    text = checked.lines[line - 1] if 1 <= line <= len(checked.lines) else ""
    indent = text[: len(text) - len(text.lstrip())]
    comment = f"{indent}# torchstone: ignore[{finding.name}]\n"
    edit = Edit(finding.path, line, 0, line, 0, comment)
    title = Text(f"Ignore {finding.name} here", f"在此处忽略 {finding.name}").get(lang)
    return _action(checked, finding, title, (edit,), lang)


def _action(
    checked: Checked,
    finding: Finding,
    title: str,
    edits: tuple[Edit, ...],
    lang: str,
    preferred: bool = False,
) -> types.CodeAction:
    """Edits of one version: an editor that has gone on refuses them."""
    document = types.OptionalVersionedTextDocumentIdentifier(checked.uri, checked.version)
    changes: list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit] = [
        types.TextEdit(
            types.Range(
                checked.position(edit.line, edit.column),
                checked.position(edit.end_line, edit.end_column),
            ),
            edit.text,
        )
        for edit in edits
    ]
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[d for d in diagnostics(checked, lang) if d.code == finding.rule
                     and d.range == checked.range(finding)],
        is_preferred=preferred or None,
        edit=types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, changes)]),
    )  # fmt: skip
