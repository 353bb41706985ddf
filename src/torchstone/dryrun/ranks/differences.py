"""Replicas compared between ranks at the end of the run: which differ, and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torchstone.core.place import Place
from torchstone.dryrun.ranks.branches import find_branch
from torchstone.dryrun.ranks.coordinator import Played
from torchstone.dryrun.ranks.posts import Post, wrong_group_text
from torchstone.dryrun.ranks_record import RankFault, Side
from torchstone.dryrun.record import Replica
from torchstone.dryrun.rules import BUFFERS, REPLICAS, WRONG_GROUP

_SHARES_DATA = ("all_to_all", "reduce_scatter", "scatter", "send", "recv")
"""Communication of programs whose ranks hold different parts of the model."""
_NAMED = 3
"""Names of parameters in a sentence."""


def replica_faults(played: Played) -> list[RankFault]:
    """One fault for each way in which replicas differ."""
    held: dict[str, dict[int, Replica]] = defaultdict(dict)
    for rank, record in sorted(played.records.items()):
        for replica in record.replicas:
            held[replica.name][rank] = replica
    kinds: dict[str, dict[str, dict[int, Replica]]] = defaultdict(dict)
    whole = _averaged_over(played)
    for name, replicas in held.items():
        for members in _groups(replicas, whole):
            same = {rank: replicas[rank] for rank in members if rank in replicas}
            kind = _difference(same)
            if kind and (kind != "buffer" or _is_used(played)):
                kinds[kind].setdefault(name, same)
    return [
        _wrong_group(played, kind, found, held) or _fault(kind, found, len(held))
        for kind, found in kinds.items()
    ]


def _wrong_group(
    played: Played,
    kind: str,
    found: dict[str, dict[int, Replica]],
    held: dict[str, dict[int, Replica]],
) -> RankFault | None:
    """Weights that are equal across the groups that reduce their gradients, and never inside of one."""
    if kind != "initial":
        return None
    name, members = next(iter(found.items()))
    alike: dict[int, list[int]] = defaultdict(list)
    for rank, item in held[name].items():
        alike[item.first].append(rank)
    holders = [alike[item.first] for item in members.values()]
    if any(len(ranks) < 2 or len(set(ranks) & set(members)) > 1 for ranks in holders):
        return None
    reduced = {
        post.members: post.stack[0]
        for post in played.posts[min(members)]
        if post.op == "all_reduce" and post.stack
    }
    place = reduced.get(tuple(sorted(members)))
    if place is None or any(set(holders[0]) <= set(group) for group in reduced):
        return None
    said = wrong_group_text(tuple(members), holders[0])
    side = Side(tuple(members), said.en, (place,), text_zh=said.zh)
    return RankFault(WRONG_GROUP.id, "wrong-group", (side,))


def _is_used(played: Played) -> bool:
    """Do buffers count as they are: has the program ended, evaluated or saved? Else a later line may
    still make them equal."""
    done = played.records.values()
    return all(item.ending in ("end", "exit") for item in done) or any(
        item.progress.evaluation_forwards or item.progress.saves for item in done
    )


def _groups(replicas: dict[int, Replica], whole: tuple[int, ...]) -> set[tuple[int, ...]]:
    """The groups whose members should hold the same: known on the ranks that reduced a gradient."""
    found = {item.members for item in replicas.values() if item.members}
    if found or set(replicas) != set(whole):
        return found
    equal_at_first = len({item.first for item in replicas.values()}) == 1
    return {whole} if equal_at_first else set()


def _averaged_over(played: Played) -> tuple[int, ...]:
    """All ranks, in a program that averages gradients over all of them and exchanges nothing else:
    what is equal at the start should stay so."""
    posts = [post for of_rank in played.posts.values() for post in of_rank]
    if any(post.op in _SHARES_DATA or _is_activation(post) for post in posts):
        return ()
    replicas = [item for record in played.records.values() for item in record.replicas]
    ranks = tuple(sorted(played.records))
    return ranks if any(set(item.members) >= set(ranks) for item in replicas) else ()


def _is_activation(post: Post) -> bool:
    return post.phase == "forward" and post.op in ("all_reduce", "all_gather") and not post.inside


def _difference(replicas: dict[int, Replica]) -> str:
    """`initial`, `update`, `buffer`, or nothing."""
    if len({item.last for item in replicas.values()}) < 2:
        return ""
    if any(item.is_buffer for item in replicas.values()):
        return "buffer"
    return "initial" if len({item.first for item in replicas.values()}) > 1 else "update"


def _fault(kind: str, found: dict[str, dict[int, Replica]], total: int) -> RankFault:
    names = list(found)
    shown = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    first = next(iter(found.values()))
    rule = BUFFERS if kind == "buffer" else REPLICAS
    sides = tuple(_sides(kind, first, f"{shown} ({len(names)} of {total})"))
    places = [place for side in sides for place in side.stack]
    branch, text = Place(), ""
    if kind == "update" and places and len({item.steps for item in first.values()}) > 1:
        branch, text = find_branch((places[0],), ())
    return RankFault(rule.id, kind, sides, branch=branch, branch_text=text)


def _sides(kind: str, replicas: dict[int, Replica], what: str) -> Iterable[Side]:
    """Ranks that hold the same stand on one side."""
    same: dict[int, list[int]] = defaultdict(list)
    for rank, item in replicas.items():
        same[item.first if kind == "initial" else item.last].append(rank)
    groups = sorted(same.values(), key=lambda ranks: -replicas[ranks[0]].steps)
    if len({item.steps for item in replicas.values()}) == 1:
        groups = [sorted(replicas)]  # all do the same with values of their own
    for ranks in groups:
        item = replicas[ranks[0]]
        en, zh, place = _words(kind, item)
        yield Side(tuple(ranks), f"{what}: {en}", _stack(place), text_zh=f"{what}：{zh}")


def _words(kind: str, item: Replica) -> tuple[str, str, Place]:
    if kind == "initial":
        return (
            "initial values of its own, never broadcast",
            "初始值各不相同，且从未广播",
            item.drawn,
        )
    if kind == "buffer":
        return "statistics of its own data", "只统计了自己的数据", item.stepped
    if not item.steps:
        return "never updated", "从未更新", item.stepped
    return f"updates of its own in {item.steps} steps", f"{item.steps} 步各自更新", item.stepped


def _stack(place: Place) -> tuple[Place, ...]:
    return (place,) if place.line else ()
