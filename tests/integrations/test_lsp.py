"""A real client speaks to the server as an editor does: `torchstone lsp` in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from torchstone.core.fix import Edit, apply_edits

TEXT = """\
import torch

# 说明 😀
def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        optimizer.zero_grad()
        loss = model(x.cuda()).mean(); loss.backward()
        optimizer.step()
        "😀"; total += loss.item()
    y = torch.ones(3); "😀"; y.add(1)
    return torch.load("weights.pt"), total
"""


class Editor(LanguageClient):
    """Keeps what was published."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.shown: list[str] = []
        self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda given: self.published.put_nowait(given)
        )
        self.feature(types.WINDOW_SHOW_MESSAGE)(lambda given: self.shown.append(given.message))

    async def begin(self, folder: Path, lang: str) -> None:
        await self.start_io(sys.executable, "-m", "torchstone", "lsp", "--lang", lang)
        asked = types.InitializeParams(
            capabilities=types.ClientCapabilities(), root_uri=folder.as_uri()
        )
        await self.initialize_async(asked)
        self.initialized(types.InitializedParams())

    async def open(self, uri: str, text: str) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return list((await self.published.get()).diagnostics)

    async def change(self, uri: str, version: int, text: str) -> None:
        document = types.VersionedTextDocumentIdentifier(version, uri)
        whole = [types.TextDocumentContentChangeWholeDocument(text)]
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, whole))

    async def fixes(self, uri: str, at: types.Range) -> list[Any]:
        context = types.CodeActionContext([])
        asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), at, context)
        return list(await self.text_document_code_action_async(asked) or [])

    async def end(self) -> None:
        await self.shutdown_async(None)
        self.exit(None)
        await self.stop()  # type: ignore[no-untyped-call]


def changed_by(action: Any, text: str) -> str:
    """What an editor makes of the text: its columns are units of UTF-16."""
    lines = text.splitlines(keepends=True)

    def column(at: types.Position) -> int:
        return len(lines[at.line].encode("utf-16-le")[: 2 * at.character].decode("utf-16-le"))

    [document] = action.edit.document_changes
    return apply_edits(
        text,
        (
            Edit(
                "", r.start.line + 1, column(r.start), r.end.line + 1, column(r.end), edit.new_text
            )
            for edit in document.edits
            for r in [edit.range]
        ),
    )


async def use(folder: Path, lang: str) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.torchstone.check]\nignore = ["load-without-map-location"]\ntorch = "2.4"\n'
    )
    path = folder / "train.py"
    path.write_text("")  # the editor's text counts
    uri = path.as_uri()
    editor = Editor()
    await editor.begin(folder, lang)
    found = await editor.open(uri, TEXT)
    assert {item.code for item in found} == {"TS236", "TS301", "TS509"}
    [sync] = [item for item in found if item.code == "TS301"]
    assert (sync.range.start.line, sync.range.start.character) == (9, 23)  # 😀 is two units
    assert ("每" in sync.message) == (lang == "zh")
    where = types.HoverParams(types.TextDocumentIdentifier(uri), sync.range.start)
    shown = await editor.text_document_hover_async(where)
    assert shown is not None
    assert "# TS301" in shown.contents.value  # type: ignore[union-attr]

    for item in found:
        for action in await editor.fixes(uri, item.range):
            after = changed_by(action, TEXT)
            await editor.change(uri, 2, after)
            left = (await editor.published.get()).diagnostics
            assert len(left) == len(found) - 1, (action.title, after)
            await editor.change(uri, 3, TEXT)
            await editor.published.get()

    await editor.change(uri, 4, TEXT + "\n")
    await editor.change(
        uri, 5, "import torch\n"
    )  # typed on at once: the letter before is not checked
    last = await editor.published.get()
    assert (last.version, list(last.diagnostics)) == (5, [])
    assert editor.published.empty()
    (folder / "pyproject.toml").write_text("[tool.torchstone.check]\nignroe = []\n")
    await editor.change(uri, 6, TEXT)
    while not editor.shown:
        await asyncio.sleep(0.02)
    assert "ignroe" in editor.shown[0]
    await editor.end()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_editor_is_shown_findings_pages_and_fixes(lang: str, tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(use(tmp_path, lang), 120))
