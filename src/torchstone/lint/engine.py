"""`check`: files in, a report out. One parse per file, and only the rules whose words it holds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torchstone._version import __version__
from torchstone.core.errors import UsageError
from torchstone.core.finding import Confidence, Finding, in_order
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text
from torchstone.lint.catalog import all_rules, matching, selected
from torchstone.lint.findings import HARMLESS
from torchstone.lint.options import CheckOptions
from torchstone.lint.parallel import Progress
from torchstone.lint.reading import Reading, no_collector
from torchstone.lint.rules.unparsable_file import RULE as UNPARSABLE
from torchstone.lint.unparsable import split_unparsable
from torchstone.sources import versions
from torchstone.sources.discover import File, discover, with_contents
from torchstone.sources.project import Project


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
    project.strict = options.strict
    project.doubtful = options.strict or options.min_confidence == Confidence.POSSIBLE
    project.torch_known = required is not None or bool(options.torch)
    run = Reading(rules, project, torch, options.no_cache, cache_folder, paths)
    with no_collector():
        run.all(files, progress, _jobs(options.jobs, may_fork))
        project.release()
    if not options.no_cache:
        run.cache.save()
    findings = [item for result in run.results.values() for item in result.findings]
    gaps += [item for result in run.results.values() for item in result.gaps]
    broken, gaps = split_unparsable(gaps, UNPARSABLE.code in matching(options.ignore, "--ignore"))
    findings += broken
    if not files:
        gaps.append(_nothing(options.paths))
    elif len(run.rules) < len(rules) / 2 and any(b"torch" in _bytes(file) for file in files):
        gaps.append(_few_rules(options.paths, torch, f"{len(run.rules)} / {len(rules)}"))
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


def _bytes(file: File) -> bytes:
    data = file.read()
    return data if isinstance(data, bytes) else b""


def _few_rules(paths: tuple[str, ...], torch: versions.Version | None, share: str) -> Gap:
    """A version that switches most rules off must not look like a clean project."""
    given = ".".join(map(str, torch or ()))
    return Gap(
        " ".join(paths),
        Message(
            "check.few-rules",
            Text(
                f"the project asks for torch {given}, which is older than most of the rules that were "
                f"selected: {share} were run",
                f"项目要求 torch {given}，早于多数选中的规则所适用的版本：只运行了 {share} 条规则",
            ),
        ),
        f"torchstone check --torch latest {' '.join(paths)}",
        failed=True,
    )


def _outside(options: CheckOptions, paths: list[str]) -> Report | None:
    if not options.with_tools:
        return None
    # outside tools are loaded only when asked for: nobody else pays for them
    from torchstone.lint.outside import run_outside

    return run_outside(options.with_tools, paths or ["."], options.allow_plugins)


def _narrowed(findings: list[Finding], options: CheckOptions, paths: list[str]) -> list[Finding]:
    floor = Confidence(options.min_confidence).rank
    findings = [
        item
        for item in findings
        if item.confidence.rank <= floor or (options.strict and item.why.id.endswith(HARMLESS))
    ]
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


def _measures(run: Reading) -> tuple[Measure, ...]:
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


def check_paths(paths: Iterable[str | Path] | str | Path, **options: object) -> Report:
    """`torchstone.check`: the same from Python."""
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    return check(CheckOptions(paths=tuple(str(path) for path in given), **options))  # type: ignore[arg-type]
