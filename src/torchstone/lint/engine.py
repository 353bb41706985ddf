"""`check`: files in, a report out. One parse per file, and only the rules whose words it holds."""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torchstone._version import __version__
from torchstone.core.errors import UsageError
from torchstone.core.finding import Confidence, Finding, Location, in_order
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text
from torchstone.lint import comments, parallel
from torchstone.lint.cache import Cache
from torchstone.lint.catalog import all_rules, matching, selected
from torchstone.lint.facts.confidence import settle
from torchstone.lint.findings import findings_of
from torchstone.lint.ignores import apply_ignores
from torchstone.lint.options import CheckOptions
from torchstone.lint.parallel import Progress
from torchstone.lint.result import Result
from torchstone.lint.rule import Hit, Rule
from torchstone.lint.rules.unparsable_file import RULE as UNPARSABLE
from torchstone.lint.unparsable import split_unparsable
from torchstone.sources import versions
from torchstone.sources.callers import WORDS
from torchstone.sources.discover import File, discover, with_contents
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source, decode

_COLLECT_EVERY = 1024


def check(
    options: CheckOptions,
    stdin: bytes = b"",
    progress: Progress | None = None,
    cache_folder: Path | None = None,
    instead: Mapping[str, bytes] | None = None,
    may_fork: bool = False,
) -> Report:
    """Look at everything the options name and say what is wrong.

    `instead` holds what files shall be taken to hold, by the name they have in reports. `may_fork`
    says that this program has no threads: as many processes as pay then read the files.
    """
    rules = selected(options.select, options.ignore)
    paths = [path for path in options.paths if path != "-"]
    files, gaps = discover(paths, options.exclude)
    if "-" in options.paths:
        files.append(File(Path(options.stdin_name), options.stdin_name, stdin))
    if instead:
        files = [replace(f, data=instead[f.name]) if f.name in instead else f for f in files]
    files = with_contents(files)
    project = Project(files)
    required = _torch_version(options.torch, paths)
    torch = required.oldest if required else None
    project.torch_open = required.open if required else False
    run = _Run(rules, project, torch, options.no_cache, cache_folder, paths)
    with _no_collector():
        run.all(files, progress, _jobs(options.jobs, may_fork))
    if not options.no_cache:
        run.cache.save()
    findings = [item for result in run.results.values() for item in result.findings]
    gaps += [item for result in run.results.values() for item in result.gaps]
    broken, gaps = split_unparsable(gaps, UNPARSABLE.code in matching(options.ignore, "--ignore"))
    findings += broken
    if not files:
        gaps.append(_nothing(options.paths))
    findings, hidden = _without_baseline(_narrowed(findings, options, paths), options)
    extra = _outside(options, paths)
    report = Report(
        "check",
        in_order(findings),
        (*_measures(run), *hidden),
        tuple(gaps),
        {
            "torchstone": __version__,
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
            "torch": ".".join(map(str, torch)) if torch else "latest (not pinned by the project)",
        },
        _infos(findings),
        " ".join(options.paths),
    )
    return report + extra if extra else report


def _jobs(wanted: int, may_fork: bool) -> int | None:
    """The number of processes; None for as many as pay."""
    if wanted < 0:
        raise UsageError(
            "--jobs", str(wanted), Text("a number of processes, or 0", "进程数，或 0"),
            Text("leave it out for as many as pay", "不指定则自动决定"),
        )  # fmt: skip
    return wanted or (None if may_fork else 1)


def _infos(findings: list[Finding]) -> dict[str, RuleInfo]:
    """What readers need of the rules that fired; reason and remedy in the first finding's words."""
    rules = {rule.code: rule for rule in all_rules()}
    infos: dict[str, RuleInfo] = {}
    for item in findings:
        if item.rule in rules and item.rule not in infos:
            why, remedy = (Text(m.say("en"), m.say("zh")) for m in (item.why, item.remedy))
            infos[item.rule] = replace(rules[item.rule].info(), why=why, remedy=remedy)
    return infos


def _nothing(paths: tuple[str, ...]) -> Gap:
    """Nothing to read is worth saying: an ignored folder would otherwise look clean."""
    return Gap(
        " ".join(paths),
        Message(
            "check.nothing",
            Text(
                "no Python file or notebook here, or all of them are ignored",
                "此处没有 Python 文件或 notebook，或它们全部被忽略",
            ),
        ),
        "name a file, or look into .gitignore and --exclude",
    )


def _outside(options: CheckOptions, paths: list[str]) -> Report | None:
    if not options.with_tools:
        return None
    # outside tools are loaded only when asked for: nobody else pays for them
    from torchstone.lint.outside import run_outside

    return run_outside(options.with_tools, paths or ["."], options.allow_plugins)


def _narrowed(findings: list[Finding], options: CheckOptions, paths: list[str]) -> list[Finding]:
    floor = Confidence(options.min_confidence).rank
    findings = [item for item in findings if item.confidence.rank <= floor]
    if options.since:
        from torchstone.sources.git import changed_lines

        changed = changed_lines(options.since, _folder(paths))
        findings = [item for item in findings if _is_changed(item, changed)]
    if options.show:
        wanted = tuple(key.removeprefix("#").lower() for key in options.show)
        missing = [k for k in wanted if not any(f.fingerprint.startswith(k) for f in findings)]
        if missing:
            raise UsageError(
                "--show",
                repr(missing[0]),
                Text("the id of a present finding", "现有问题的编号"),
                Text(
                    "see `torchstone check --format agent`",
                    "参见 `torchstone check --format agent`",
                ),
            )
        findings = [item for item in findings if item.fingerprint.startswith(wanted)]
    return findings


def _without_baseline(
    findings: list[Finding], options: CheckOptions
) -> tuple[list[Finding], tuple[Measure, ...]]:
    """What the baseline does not have, and how many it hides."""
    if not options.baseline:
        return findings, ()
    from torchstone.lint import baseline

    fresh = baseline.without_known(findings, Path(options.baseline))
    hidden = Measure(
        "baseline_hidden", len(findings) - len(fresh), "findings",
        Text(f"known to {options.baseline}", f"记录于 {options.baseline}"),
        Text("findings hidden by the baseline", "被基线隐藏的问题"),
    )  # fmt: skip
    return fresh, (hidden,)


def _folder(paths: list[str]) -> Path:
    first = Path(paths[0]) if paths else Path(".")
    return first if first.is_dir() else first.parent


def _is_changed(finding: Finding, changed: dict[str, set[int] | None]) -> bool:
    path = str(Path(finding.path).resolve())
    if path not in changed:
        return False
    lines = changed[path]
    span = range(finding.location.line, max(finding.location.end_line, finding.location.line) + 1)
    return lines is None or finding.location.cell > 0 or any(line in lines for line in span)


def _torch_version(given: str, paths: list[str]) -> versions.Requirement | None:
    if given == "latest":
        return None
    if given:
        version = versions.parse_version(given)
        if version is None:
            raise UsageError(
                "--torch",
                repr(given),
                Text("a version such as 2.4, or latest", "形如 2.4 的版本号，或 latest"),
                Text("pass --torch 2.4", "请传入 --torch 2.4"),
            )
        return versions.Requirement(version, open=False)
    return versions.torch_requirement(_folder(paths))


def _measures(run: _Run) -> tuple[Measure, ...]:
    counted = Text("counted while reading", "读取时统计")
    return (
        Measure("files", len(run.results), "files", counted, Text("files read", "已读取文件")),
        Measure(
            "lines",
            sum(result.lines for result in run.results.values()),
            "lines",
            counted,
            Text("lines read", "已读取行数"),
        ),
        Measure("rules", len(run.rules), "rules", counted, Text("rules used", "启用规则")),
    )


@contextmanager
def _no_collector() -> Iterator[None]:
    """Syntax trees have no cycles: the collector would only walk them again and again.

    What rules keep may have some, so the run itself collects now and then, between two files.
    """
    was = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


def _collect() -> None:
    """Free what rules left in circles; what is still in use is not walked a second time."""
    gc.collect()
    gc.freeze()


class _Run:
    """One pass over the files, and a second over those that asked about their callers."""

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
        self._second = False
        self._by_word: dict[bytes, list[Rule]] = {}
        self._always: list[Rule] = []
        for rule in self.rules:
            if not rule.triggers:
                self._always.append(rule)
            for word in rule.triggers:
                self._by_word.setdefault(word.encode(), []).append(rule)
        self._needs = {rule.code: frozenset(map(str.encode, rule.needs)) for rule in self.rules}
        self._also = {rule.code: frozenset(map(str.encode, rule.also)) for rule in self.rules}
        self._trigger_words = frozenset(self._by_word)
        codes = ",".join(rule.code for rule in self.rules)
        own = "" if no_cache else _own_digest()
        basis = f"{__version__}|{sys.version_info[:2]}|{codes}|{torch}|{project.torch_open}|{own}"
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
        self.cache.seal(self.project.tops)
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

    def some(self, files: list[File], progress: Progress | None) -> dict[str, Result]:
        """Read these files, and those again that asked about their callers."""
        asking: list[File] = []
        for number, file in enumerate(files):
            if progress is not None:
                progress(number, len(files), file.name)
            data = file.read()
            if isinstance(data, Gap):
                self.results[file.name] = Result(gaps=[data])
            elif self.read(data, file.name):
                asking.append(file)
            if number and not number % _COLLECT_EVERY:
                _collect()
        if asking:
            self.project.answer()
            self._second = True
            for number, file in enumerate(asking):
                data = file.read()
                if isinstance(data, bytes):
                    self.read(data, file.name)
                if number and not number % _COLLECT_EVERY:
                    _collect()
        return {file.name: self.results[file.name] for file in files}

    def read(self, data: bytes, name: str) -> bool:
        """Check one file; True when its rules asked what only the whole project can answer."""
        result = self.results[name] = Result()
        text = decode(data, name)
        if isinstance(text, Gap):
            result.gaps.append(text)
            return False
        source: Source | None = Source(name, text)
        if name.endswith(".ipynb"):
            from torchstone.sources.notebook import read_notebook

            source, result.gaps[:] = read_notebook(text, name)
            if source is None:
                return False
            data = source.text.encode()
        assert source is not None
        result.lines = data.count(b"\n") + (not data.endswith(b"\n"))
        kept = self.project.parsed(name)
        tree = parse(source) if kept is None else kept.root
        if isinstance(tree, Gap):
            result.gaps.append(tree)
            return False
        active = self._active(data)
        marked = comments.MARK in data
        if not active and not marked:
            return False
        self.project.begin_file()
        # answers that were kept before the callers were known may be too early
        scene = kept if kept and not self._second else self.project.scene(source, tree)
        return self._run(active, scene, result, marked)

    def _active(self, data: bytes) -> list[Rule]:
        """The rules whose words the file holds."""
        if b"torch" not in data:
            return []
        words = set(data.translate(WORDS).split())
        found = {
            rule.code: rule
            for word in words & self._trigger_words
            for rule in self._by_word[word]
            if self._needs[rule.code] <= words
            and not (rule.also and self._also[rule.code].isdisjoint(words))
        }
        return [*found.values(), *self._always]

    def _run(self, active: list[Rule], scene: Scene, result: Result, marked: bool) -> bool:
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
        result.shared, result.missing = project.shared, frozenset(project.missing)
        return project.asked


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
        home.parent / "sources",
    ):
        for path in sorted(folder.glob("*.py")):
            status = path.stat()
            stamp.update(f"{path.name}:{status.st_size}:{status.st_mtime_ns};".encode())
    return stamp.hexdigest()[:16]


def check_paths(paths: Iterable[str | Path] | str | Path, **options: object) -> Report:
    """`torchstone.check`: the same from Python."""
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    return check(CheckOptions(paths=tuple(str(path) for path in given), **options))  # type: ignore[arg-type]
