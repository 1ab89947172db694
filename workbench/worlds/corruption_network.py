"""Operators on packet captures (workbench.worlds.formats.pcap): frames seen twice, frames never seen."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Tree, WorldError
from workbench.worlds.corruption_registry import Operator, Params, changed, need, register, undo_of
from workbench.worlds.formats import pcap


def _repeat(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records, delay = pcap.split(tree[path]), params.get("delay_us", 40)
    chosen = set(need(params, "indexes", "duplicate_packets"))
    if not chosen <= set(range(len(records))):
        raise WorldError(f"duplicate_packets: {path} has {len(records)} frames, not {max(chosen)}")
    out = []
    for at, (time_us, data) in enumerate(records):
        out += [(time_us, data), (time_us + delay, data)] if at in chosen else [(time_us, data)]
    return changed(tree, path, pcap.join(out))


def _once(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    extra = {at + nth + 1 for nth, at in enumerate(sorted(set(params["indexes"])))}
    records = [record for at, record in enumerate(pcap.split(tree[path])) if at not in extra]
    return changed(tree, path, pcap.join(records))


register(
    Operator(
        "duplicate_packets",
        "lines",
        "a tap recorded some frames of a capture twice",
        {"indexes": "[frame, …] from 0", "delay_us": "how much later the second one was seen, default 40"},
        _repeat,
        _once,
    )
)


def _dropped(tree: Tree, path: str, params: Params) -> list[list[Any]]:
    """[place, time, frame in hexadecimal] of what is dropped."""
    wanted = {tuple(item) for item in need(params, "packets", "missing_packets")}
    found = []
    for at, (time_us, data) in enumerate(pcap.split(tree[path])):
        packet = pcap.parse(time_us, data)
        if packet and packet.payload and (packet.source, packet.source_port, packet.seq) in wanted:
            found.append([at, time_us, data.hex()])
    if len(found) != len(wanted):
        raise WorldError(f"missing_packets: {path} holds {len(found)} of the {len(wanted)} frames to drop")
    return found


def _drop(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    gone = {at for at, _, _ in _dropped(tree, path, params)}
    return changed(tree, path, pcap.join(r for at, r in enumerate(pcap.split(tree[path])) if at not in gone))


def _put_back(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records = pcap.split(tree[path])
    for at, time_us, data in undo_of(params, "missing_packets"):
        records.insert(at, (time_us, bytes.fromhex(data)))
    return changed(tree, path, pcap.join(records))


register(
    Operator(
        "missing_packets",
        "lines",
        "a capture lost some frames; a log still tells what they carried",
        {"packets": "[[source address, source port, sequence number], …] of frames with payload"},
        _drop,
        _put_back,
        _dropped,
    )
)
