"""The billing dashboard as an image: a table of services above, findings of two lines each below."""

from __future__ import annotations

from typing import Any

from workbench.worlds.formats import pixel_font, png
from workbench.worlds.generators.cloud_cost import answers

SIZE = (600, 340)
PALETTE = ((250, 250, 250), (222, 230, 240), (150, 160, 175), (20, 24, 32))  # ground, panel, rule, ink
SCALE, INK = 2, 3
STEP = 18  # pixels from line to line


def dollars(cents: int) -> str:
    return f"${cents // 100}.{cents % 100:02d}"


def lines(world: Any) -> list[str]:
    """The dashboard's text, line by line."""
    out = [f"BILLING ACCOUNT {world.account}", *(f"  {name:<12}{dollars(cents):>12}" for name, cents in world.services)]
    out.append("FINDINGS")
    for finding in world.findings:
        out.append(f"{answers.FINDING[finding.kind][1]:<12} {finding.resource_id}")
        out.append(f"  {finding.name:<24} {finding.status:<9} {dollars(finding.cents):>8}")
    return out


def render(world: Any) -> bytes:
    width, height = SIZE
    canvas = [[0] * width for _ in range(height)]
    left, top = world.margin
    text = lines(world)
    for row in range(top - 4, top + 16):  # the title's panel
        canvas[row][4 : width - 4] = [1] * (width - 8)
    rule = top + STEP * text.index("FINDINGS") - 4
    canvas[rule][4 : width - 4] = [2] * (width - 8)
    for number, line in enumerate(text):
        pixel_font.draw(canvas, left, top + number * STEP, line, INK, SCALE)
    return png.write(canvas, PALETTE)


def read(data: bytes) -> tuple[tuple, list[tuple], tuple[int, int]]:
    """(services, findings, margin): the inverse of render, for the round trip."""
    canvas, _ = png.read(data)
    dark = [(y, x) for y, row in enumerate(canvas) for x, pixel in enumerate(row) if pixel == INK]
    left, top = min(x for _, x in dark), min(y for y, _ in dark)
    signs = {bits: sign for sign, bits in pixel_font.GLYPHS.items()} | {(0,) * 7: " "}
    step = pixel_font.ADVANCE * SCALE
    text = []
    for y in range(top, top + STEP * 17, STEP):
        cells = (pixel_font.cell(canvas, x, y, INK, SCALE) for x in range(left, SIZE[0], step))
        text.append("".join(signs[bits] for bits in cells).rstrip())
    text = [line for line in text if line]
    at = text.index("FINDINGS")
    services = tuple((name, _cents(cost)) for name, cost in (line.split() for line in text[1:at]))
    findings = []
    for first, second in zip(text[at + 1 :: 2], text[at + 2 :: 2], strict=True):
        name, status, cost = second.split()
        findings.append((first[13:], first[:12].rstrip(), name, status, _cents(cost)))
    return services, findings, (left, top)


def _cents(text: str) -> int:
    return int(text.lstrip("$").replace(".", ""))
