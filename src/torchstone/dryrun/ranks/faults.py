"""What is wrong with a run of all ranks, the cause before its consequences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torchstone.core.place import Place
from torchstone.core.text import words
from torchstone.dryrun.ranks.branches import find_branch
from torchstone.dryrun.ranks.coordinator import Blocked, Played
from torchstone.dryrun.ranks.differences import replica_faults
from torchstone.dryrun.ranks.matching import Disagreement
from torchstone.dryrun.ranks.posts import NEW_GROUP, Post
from torchstone.dryrun.ranks.process.uniform import EQUAL, OF_ONE_RANK
from torchstone.dryrun.ranks_record import RankFault, Side, Wait
from torchstone.dryrun.record import Record

_ENDED = "(the program has ended)"
_ENDED_ZH = "（程序已结束）"


def faults_of(played: Played) -> list[RankFault]:
    """The first cause: a rank that raises explains the wait of the others."""
    raised = _raised(played)
    if raised is not None:
        return [raised]
    found: list[RankFault] = [_disagreed(item, played) for item in played.disagreements[:1]]
    late = played.timed_out or bool(out_of_time(played)) or _waits_for_ended(played)
    if not found and played.blocked and not late:
        found = [_standstill(played)]
    if not found and not late:
        found = _left_over(played)
    if not found:
        found += _unawaited(played)
    found += _drift(played)
    if not found and not out_of_time(played):  # ranks that we ended may be at different steps
        found = replica_faults(played)
    return found


def out_of_time(played: Played) -> tuple[int, ...]:
    """Ranks that we ended at the time limit: that others wait for them is no fault of the program."""
    return tuple(rank for rank, record in sorted(played.records.items()) if record.ending == "time")


def _waits_for_ended(played: Played) -> bool:
    """Do ranks wait for one that we ended after enough steps? That is no fault of the program."""
    waited_for = {rank for item in played.blocked for rank in item.waits_for}
    ends = {rank: record.ending for rank, record in played.records.items()}
    return any(ends.get(rank) == "budget" for rank in waited_for)


# -- a rank that raises


def _raised(played: Played) -> RankFault | None:
    errors = {
        rank: record
        for rank, record in played.records.items()
        if record.ending == "error" or (record.ending == "exit" and record.ending_detail != "0")
    }
    if not errors:
        return None
    sides: dict[tuple[str, Place], list[int]] = defaultdict(list)
    for rank, record in errors.items():
        sides[_what_raised(record), record.ending_place].append(rank)
    first = errors[min(errors)]
    rest = tuple(rank for rank in played.records if rank not in errors)
    shown = [Side(tuple(sorted(ranks)), text, (place,)) for (text, place), ranks in sides.items()]
    if rest:
        posts = [played.posts[rank][-1] for rank in rest if played.posts[rank]]
        shown += _sides(posts)
    return RankFault(
        "DR601" if rest else "DR600",
        "raise",
        tuple(shown),
        waits=_waits(played.blocked),
        error=first.error,
        local_value=_local_value(played),
    )


def _what_raised(record: Record) -> str:
    if record.stop is not None:
        first = record.stop.message.splitlines()[0] if record.stop.message else ""
        return f"{record.stop.exception}: {first}"
    return f"sys.exit({words(record.ending_detail, 'en')})"


# -- ranks that disagree


def _disagreed(wrong: Disagreement, played: Played) -> RankFault:
    sides = _sides(wrong.posts)
    place, text = _branch(sides)
    rule = {"group": "DR605", "operation": "DR601"}.get(wrong.kind, "DR602")
    return RankFault(
        rule,
        wrong.kind,
        tuple(sides),
        wrong.posts[0].group,
        wrong.position,
        place,
        text,
        waits=_waits(played.blocked),
        local_value=_local_value(played),
    )


def _sides(posts: Iterable[Post]) -> list[Side]:
    grouped: dict[tuple[object, ...], list[Post]] = defaultdict(list)
    for post in posts:
        splits = (post.in_splits, post.out_splits)
        grouped[(post.signature(), post.stack, splits)].append(post)
    return [Side(tuple(post.rank for post in same), *_text(same)) for same in grouped.values()]


def _text(same: list[Post]) -> tuple[str, tuple[Place, ...], str, str]:
    """What equal posts do, where, inside of what, and the same in Chinese."""
    post = same[0]
    call = post.text(tuple(item.peer for item in same))
    if not post.in_splits and not post.out_splits:
        return call, post.stack, post.inside, ""
    sends, takes = list(post.in_splits), list(post.out_splits)
    zh = f"{call} 发送 {sends}，接收 {takes}"
    return f"{call} sends {sends}, takes {takes}", post.stack, post.inside, zh


def _branch(sides: list[Side]) -> tuple[Place, str]:
    if len(sides) < 2 or sides[0].stack == sides[1].stack:  # the same lines, with other values
        return Place(), ""
    return find_branch(sides[0].stack, sides[1].stack)


def _local_value(played: Played) -> Place:
    """Where rank 0 was given a value of its own, in the passes in which it was."""
    if played.answers == EQUAL or 0 not in played.records:
        return Place()
    said = played.records[0].assumptions
    asked = [item.place for item in said if item.question == OF_ONE_RANK]
    return asked[0] if asked else Place()


# -- nobody can go on


def _standstill(played: Played) -> RankFault:
    blocked = {item.post.rank: item for item in played.blocked}
    ended = {rank for rank in played.posts if rank not in blocked}
    cycle = find_cycle(blocked)
    sides = _sides(item.post for item in played.blocked)
    missing = sorted({rank for item in played.blocked for rank in item.waits_for} & ended)
    if missing:
        last = played.posts[missing[0]]
        record = played.records.get(missing[0])
        place = record.ending_place if record is not None else Place()
        stack = (place,) if place.line else last[-1].stack if last else ()
        sides.append(Side(tuple(missing), _ENDED, stack, text_zh=_ENDED_ZH))
        where, text = find_branch(sides[0].stack, ())
        return RankFault(
            "DR603", "exit", tuple(sides), (sides and _group(played.blocked)) or "", 0, where, text,
            _waits(played.blocked), (), _local_value(played),
        )  # fmt: skip
    where, text = _branch(sides)
    return RankFault(
        "DR604", "cycle", tuple(sides), _group(played.blocked), 0, where, text,
        _waits(played.blocked), cycle, _local_value(played),
    )  # fmt: skip


def _group(blocked: tuple[Blocked, ...]) -> str:
    return blocked[0].post.group if blocked else ""


def _waits(blocked: tuple[Blocked, ...]) -> tuple[Wait, ...]:
    return tuple(
        Wait(item.post.rank, item.waits_for, item.post.text(), item.post.place) for item in blocked
    )


def find_cycle(blocked: dict[int, Blocked]) -> tuple[int, ...]:
    """Ranks that wait for each other in a ring, the shortest that is found first."""
    best: tuple[int, ...] = ()
    for start in sorted(blocked):
        ring = _ring_from(start, blocked)
        if ring and (not best or len(ring) < len(best)):
            best = ring
        if len(best) == 2:
            break
    return best


def _ring_from(start: int, blocked: dict[int, Blocked]) -> tuple[int, ...]:
    """The shortest way from a rank back to itself, by breadth."""
    came: dict[int, int] = {}
    queue = [start]
    for rank in queue:
        if rank not in blocked:
            continue
        for other in blocked[rank].waits_for:
            if other == start:
                ring = [rank]
                while ring[-1] != start:
                    ring.append(came[ring[-1]])
                return tuple(reversed(ring))
            if other not in came and other in blocked:
                came[other] = rank
                queue.append(other)
    return ()


# -- what is left at the end


def _left_over(played: Played) -> list[RankFault]:
    groups: dict[str, list[Post]] = defaultdict(list)
    for post in played.left_over:
        groups[post.group if not post.is_p2p else f"p2p {post.group}"].append(post)
    found = []
    for name, posts in groups.items():
        first: dict[int, Post] = {}
        for post in posts:
            first.setdefault(post.rank, post)
        members = posts[0].members if posts[0].op != NEW_GROUP else tuple(played.posts)
        missing = tuple(rank for rank in members if rank in played.posts and rank not in first)
        sides = _sides(first.values())
        where, text = find_branch(sides[0].stack, ())
        if posts[0].op == NEW_GROUP:
            sides.append(Side(missing, "(does not make it)", text_zh="（没有创建）"))
            found.append(RankFault("DR605", "group", tuple(sides), name, 0, where, text))
        elif posts[0].is_p2p:
            found.append(RankFault("DR606", "p2p", tuple(sides), name, 0, where, text))
        else:
            sides.append(Side(missing, _ENDED, text_zh=_ENDED_ZH))
            found.append(
                RankFault("DR601", "operation", tuple(sides), name, 0, where, text,
                          local_value=_local_value(played))
            )  # fmt: skip
    return found[:1]


def _unawaited(played: Played) -> list[RankFault]:
    """Work that was started and never waited for."""
    lost: dict[Place, list[Post]] = defaultdict(list)
    for post in played.unawaited:
        record = played.records.get(post.rank)
        if record is None or post.inside:
            continue
        over = record.ending in ("end", "exit") or post.step < record.progress.optimizer_steps
        if over:
            lost[post.place].append(post)
    return [
        RankFault(
            "DR607",
            "unawaited",
            (Side(tuple(sorted({post.rank for post in posts})), posts[0].text(), posts[0].stack),),
            posts[0].group,
        )
        for posts in lost.values()
    ]


def _drift(played: Played) -> list[RankFault]:
    """Replicas that do not stay equal: told by the ranks themselves."""
    found: dict[Place, RankFault] = {}
    for rank, record in played.records.items():
        for hazard in record.hazards:
            if hazard.rule == "DR608" and hazard.place not in found:
                said = hazard.detail
                side = Side((rank,), words(said, "en"), (hazard.place,), text_zh=words(said, "zh"))
                found[hazard.place] = RankFault("DR608", "drift", (side,), hazard=hazard)
    return list(found.values())
