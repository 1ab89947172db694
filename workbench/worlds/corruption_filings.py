"""Operators on financial filings: printed facts of inline-XBRL documents, and the concepts of a structured feed (companyfacts JSON)."""

from __future__ import annotations

import json
import re
from typing import Any

from workbench.worlds import Tree, WorldError
from workbench.worlds.corruption_records import text_of
from workbench.worlds.corruption_registry import Operator, Params, changed, need, register, undo_of


def _fact(tree: Tree, path: str, params: Params) -> re.Match[str]:
    """The printed text of the fact with this id."""
    name = need(params, "id", "misstated_fact")
    found = list(re.finditer(rf'<ix:nonFraction id="{re.escape(name)}"[^>]*>([^<]*)<', text_of(tree, path)))
    if len(found) != 1:
        raise WorldError(f"misstated_fact: {path} has {len(found)} facts with the id {name!r}")
    return found[0]


def _print(tree: Tree, path: str, params: Params, new: str) -> dict[str, bytes]:
    text, found = text_of(tree, path), _fact(tree, path, params)
    return changed(tree, path, (text[: found.start(1)] + new + text[found.end(1) :]).encode())


register(
    Operator(
        "misstated_fact",
        "file",
        "a filing prints a wrong number in one row",
        {"id": "of the inline-XBRL fact", "text": "what stands there instead"},
        lambda t, path, p: _print(t, path, p, need(p, "text", "misstated_fact")),
        lambda t, path, p: _print(t, path, p, undo_of(p, "misstated_fact")),
        lambda t, path, p: _fact(t, path, p)[1],
    )
)


def _feed(tree: Tree, path: str) -> dict[str, Any]:
    text = text_of(tree, path)
    value = json.loads(text)
    if _bytes(value).decode() != text:
        raise WorldError(f"{path} is not as json.dumps(indent=1) writes it: it could not be put back byte by byte")
    return value


def _bytes(feed: dict[str, Any]) -> bytes:
    return (json.dumps(feed, indent=1) + "\n").encode()


def _concept(feed: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """(the taxonomy's concepts, the concept's own name)."""
    taxonomy, own = name.split(":")
    if own not in feed["facts"].get(taxonomy, {}):
        raise WorldError(f"the feed has no concept {name!r}")
    return feed["facts"][taxonomy], own


def _rename(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    feed = _feed(tree, path)
    group, own = _concept(feed, need(params, "concept", "alias_concept"))
    taxonomy, other = need(params, "alias", "alias_concept").split(":")
    if other in feed["facts"].setdefault(taxonomy, {}):
        raise WorldError(f"alias_concept: {params['alias']} is there already")
    feed["facts"][taxonomy][other] = group.pop(own)
    return changed(tree, path, _bytes(feed))


def _rename_back(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    feed = _feed(tree, path)
    group, own = _concept(feed, params["alias"])
    node, (place, lone) = group.pop(own), undo_of(params, "alias_concept")
    taxonomy, name = params["concept"].split(":")
    entries = list(feed["facts"][taxonomy].items())
    entries.insert(place, (name, node))
    feed["facts"][taxonomy] = dict(entries)
    if lone:  # the alias's taxonomy was not in the clean feed
        del feed["facts"][params["alias"].split(":")[0]]
    return changed(tree, path, _bytes(feed))


def _rename_kept(tree: Tree, path: str, params: Params) -> list[Any]:
    feed = _feed(tree, path)
    group, own = _concept(feed, params["concept"])
    return [list(group).index(own), params["alias"].split(":")[0] not in feed["facts"]]


register(
    Operator(
        "alias_concept",
        "file",
        "a structured feed reports a line under another, accepted concept",
        {"concept": "taxonomy:name it should be", "alias": "taxonomy:name it becomes"},
        _rename,
        _rename_back,
        _rename_kept,
    )
)


def _dropped(feed: dict[str, Any], params: Params) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    group, own = _concept(feed, need(params, "concept", "missing_fact"))
    facts = group[own]["units"][params.get("unit", "USD")]
    end = need(params, "end", "missing_fact")
    lost = [[i, fact] for i, fact in enumerate(facts) if fact["end"] == end]
    if not lost:
        raise WorldError(f"missing_fact: {params['concept']} has no fact that ends on {end}")
    return facts, lost


def _drop(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    feed = _feed(tree, path)
    facts, lost = _dropped(feed, params)
    for i, _ in reversed(lost):
        del facts[i]
    return changed(tree, path, _bytes(feed))


def _undrop(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    feed = _feed(tree, path)
    group, own = _concept(feed, params["concept"])
    for i, fact in undo_of(params, "missing_fact"):
        group[own]["units"][params.get("unit", "USD")].insert(i, fact)
    return changed(tree, path, _bytes(feed))


register(
    Operator(
        "missing_fact",
        "file",
        "a structured feed lacks the facts of one period; the filings still print them",
        {"concept": "taxonomy:name", "end": "period end", "unit": "default USD"},
        _drop,
        _undrop,
        lambda t, path, p: _dropped(_feed(t, path), p)[1],
    )
)
