"""The files of one check, each read once."""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchstone._version import __version__
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text
from torchstone.lint import comments, parallel
from torchstone.lint.cache import Cache
from torchstone.lint.facts.confidence import OF_TESTS, settle, worth_running
from torchstone.lint.facts.lending import Lending, Loan, loans_of
from torchstone.lint.findings import findings_of
from torchstone.lint.ignores import apply_ignores
from torchstone.lint.parallel import Progress
from torchstone.lint.result import Result
from torchstone.lint.rule import Hit, Rule
from torchstone.sources import versions
from torchstone.sources.discover import File
from torchstone.sources.files import WORDS
from torchstone.sources.parsed_file import is_named_as_test
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source, decode

_OTHERS = frozenset(
    (b"paddle", b"mxnet", b"mindspore", b"jittor", b"oneflow", b"megengine", b"jax")
)


@contextmanager
def no_collector() -> Iterator[None]:
    """Syntax trees have no cycles: the collector would only walk them again and again, and one walk
    over all that are kept costs half of their parsing."""
    was = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


class Reading:
    """One pass over the files."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        project: Project,
        torch: versions.Version | None,
        no_cache: bool,
        cache_folder: Path | None,
        paths: list[str],
    ) -> None:
        # `torch>=0.4` admits every release that rules speak of
        least = max(torch, (1, 0)) if torch is not None and project.torch_open else torch
        self.rules = tuple(rule for rule in rules if least is None or least >= rule.torch_from)
        self.project = project
        project.torch = torch
        self.results: dict[str, Result] = {}
        self.lending = Lending(())
        self._by_word: dict[bytes, list[Rule]] = {}
        for rule in self.rules:
            for word in rule.triggers:
                self._by_word.setdefault(word.encode(), []).append(rule)
        self._needs = {rule.code: frozenset(map(str.encode, rule.needs)) for rule in self.rules}
        self._also = {rule.code: frozenset(map(str.encode, rule.also)) for rule in self.rules}
        self._trigger_words = frozenset(self._by_word)
        codes = ",".join(rule.code for rule in self.rules)
        own = "" if no_cache else _own_digest()
        basis = f"{__version__}|{sys.version_info[:2]}|{codes}|{torch}|{project.torch_open}"
        basis += f"|{project.torch_known}|{project.strict}|{project.doubtful}|{own}"
        self.cache = Cache(cache_folder, paths, basis, enabled=not no_cache)

    def all(self, files: list[File], progress: Progress | None, jobs: int | None) -> None:
        """Read every file that the cache does not know as it is."""
        todo, sizes = [], []
        for number, file in enumerate(files):
            if progress is not None:
                progress(number, len(files), file.name)
            data = file.read()
            if isinstance(data, Gap):
                self.results[file.name] = Result(gaps=[data])
            else:
                self.cache.note(file.name, data)
        self._lend(files)
        self.cache.seal(self.project.tops, self.lending.digest)
        for file in files:
            known = self.results.get(file.name) or self.cache.get(file.name)
            if known is None:
                todo.append(file)
                sizes.append(len(file.read()))  # type: ignore[arg-type]
                known = Result()
            self.results[file.name] = known  # in the order of the files
        count = parallel.processes_for(sum(sizes), jobs)
        parts = parallel.slices(todo, sizes, count)
        self.results.update(parallel.read_slices(parts, self.some, progress))
        for name, result in self.results.items():
            self.cache.put(name, result)

    def _lend(self, files: list[File]) -> None:
        """Find out what functions lend to the files that call them; of known files it is known."""
        loans: list[Loan] = []
        for file in files:
            data = file.read()
            if isinstance(data, bytes):
                known = self.cache.loans(file.name)
                found = loans_of(file.name, data) if known is None else known
                self.cache.lend(file.name, found)
                loans += found
        self.lending = Lending(loans)

    def some(self, files: list[File], progress: Progress | None) -> dict[str, Result]:
        """Read these files."""
        for number, file in enumerate(files):
            if progress is not None:
                progress(number, len(files), file.name)
            data = file.read()
            if isinstance(data, Gap):
                self.results[file.name] = Result(gaps=[data])
            else:
                self.read(data, file.name)
        return {file.name: self.results[file.name] for file in files}

    def read(self, data: bytes, name: str) -> None:
        """Check one file."""
        result = self.results[name] = Result()
        text = decode(data, name)
        if isinstance(text, Gap):
            result.gaps.append(text)
            return
        source: Source | None = Source(name, text)
        if name.endswith(".ipynb"):
            from torchstone.sources.notebook import read_notebook

            source, result.gaps[:] = read_notebook(text, name)
            if source is None:
                return
            data = source.text.encode()
        assert source is not None
        result.lines = data.count(b"\n") + (not data.endswith(b"\n"))
        kept = self.project.parsed(name)
        tree = parse(source) if kept is None else kept.root
        if isinstance(tree, Gap):
            result.gaps.append(tree)
            return
        active = self._active(data)
        marked = comments.MARK in data
        everything = marked or self.project.doubtful  # a comment may silence what is only possible
        if not everything and is_named_as_test(name):
            active = [rule for rule in active if rule.group in OF_TESTS]
        if not active and not marked:
            return
        self.project.begin_file()
        scene = kept or self.project.scene(source, tree)
        self._run(active if everything else worth_running(scene, active), scene, result, marked)

    def _active(self, data: bytes) -> list[Rule]:
        """The rules whose words the file holds."""
        words = set(data.translate(WORDS).split())
        borrowed = self.lending.to(words, data) - words
        if not borrowed and b"torch" not in data:
            # a helper may go backward and never name torch; other libraries have a backward too
            trains = b"backward" in words or b".half()" in data or b".bfloat16()" in data
            trains = trains or b"__getitem__" in words or b"state_dict" in words
            # a script may leave all of torch to the package that it starts
            trains = trains or (b"model" in words and b"train" in words)
            if not trains or not words.isdisjoint(_OTHERS):
                return []
        words |= borrowed
        held = {rule.code for word in words & self._trigger_words for rule in self._by_word[word]}
        # in the order of their codes: what one rule asks first is at hand for the next
        return [
            rule
            for rule in self.rules
            if not rule.triggers
            or (
                rule.code in held
                and self._needs[rule.code] <= words
                and not (rule.also and self._also[rule.code].isdisjoint(words))
            )
        ]

    def _run(self, active: list[Rule], scene: Scene, result: Result, marked: bool) -> None:
        project = self.project
        hits: list[Hit] = []
        for rule in active:
            try:
                hits += rule.run(scene)
            except Exception as error:  # a rule of ours that breaks must not take the rest down
                result.gaps.append(_broken(rule, scene.path, error))
        found = findings_of(settle(scene, hits), scene)
        if marked:
            found = apply_ignores(found, scene, {rule.code for rule in self.rules})
        result.findings = found
        result.shared, result.missing = project.is_shared(scene.path), project.missing(scene.path)


def _broken(rule: Rule, path: str, error: Exception) -> Gap:
    what = f"{type(error).__name__}: {error}"
    return Gap(
        path,
        Message(
            "rule.failed",
            Text(f"rule {rule.code} failed here: {what}", f"规则 {rule.code} 在此失败：{what}"),
        ),
        f"torchstone check --ignore {rule.code} {path}",
        Location(path),
        failed=True,
    )


def _own_digest() -> str:
    """Changes whenever a rule file does, so that a rule's author never sees stale findings."""
    home = Path(__file__).parent
    stamp = hashlib.sha256()
    for folder in (
        home,
        home / "rules",
        home / "knowledge",
        home / "facts",
        home / "values",
        home.parent / "sources",
    ):
        for path in sorted(folder.glob("*.py")):
            status = path.stat()
            stamp.update(f"{path.name}:{status.st_size}:{status.st_mtime_ns};".encode())
    return stamp.hexdigest()[:16]
