"""A five by seven pixel font, drawn onto rows of palette indices and read back from them.

A glyph is seven rows of five bits, the leftmost pixel the highest. A cell is six pixels wide and a line nine high, times the scale.
"""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, ADVANCE, LINE = 5, 7, 6, 9
_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.,:/$_%()+#"
_BITS = """
0E11111F111111 1E11111E11111E 0E11101010110E 1E11111111111E 1F10101E10101F 1F10101E101010 0E11101711110F 1111111F111111
0E04040404040E 0702020202120C 11121418141211 1010101010101F 111B1515111111 11111915131111 0E11111111110E 1E11111E101010
0E11111115120D 1E11111E141211 0F10100E01011E 1F040404040404 1111111111110E 11111111110A04 1111111515150A 11110A040A1111
11110A04040404 1F01020408101F
00000E010F110F 1010161911111E 00000E1010110E 01010D1311110F 00000E111F100E 0609081C080808 000F11110F010E 10101619111111
04000C0404040E 0200060202120C 10101214181412 0C04040404040E 00001A15151111 00001619111111 00000E1111110E 00001E111E1010
00000D130F0101 00001619101010 00000E100E011E 08081C08080906 0000111111130D 00001111110A04 0000111115150A 0000110A040A11
000011110F010E 00001F0204081F
0E11131519110E 040C040404040E 0E11010204081F 1F02040201110E 02060A121F0202 1F101E0101110E 0608101E11110E 1F010204080808
0E11110E11110E 0E11110F01020C
0000001F000000 00000000000C0C 000000000C0408 000C0C000C0C00 00010204081000 040F140E051E04 0000000000001F 18190204081303
02040808080402 08040202020408 0004041F040400 0A0A1F0A1F0A0A
"""
GLYPHS: dict[str, tuple[int, ...]] = {
    sign: tuple(bytes.fromhex(bits)) for sign, bits in zip(_SIGNS, _BITS.split(), strict=True)
}


def draw(canvas: list[list[int]], x: int, y: int, text: str, ink: int, scale: int = 1) -> None:
    """Text from the pixel (x, y) on, left and top. KeyError names a sign that the font lacks; IndexError when the canvas ends."""
    for place, sign in enumerate(text):
        if sign == " ":
            continue
        for row, bits in enumerate(GLYPHS[sign]):
            for column in range(WIDTH):
                if bits >> (WIDTH - 1 - column) & 1:
                    left, top = x + (place * ADVANCE + column) * scale, y + row * scale
                    for line in range(top, top + scale):
                        canvas[line][left : left + scale] = [ink] * scale


def cell(canvas: Sequence[Sequence[int]], x: int, y: int, ink: int, scale: int = 1) -> tuple[int, ...]:
    """The seven rows of bits of the cell at (x, y), one sample per dot; beyond the canvas is blank."""
    out = []
    for row in range(HEIGHT):
        top, bits = y + row * scale, 0
        for column in range(WIDTH):
            left = x + column * scale
            dark = 0 <= top < len(canvas) and 0 <= left < len(canvas[top]) and canvas[top][left] == ink
            bits = bits << 1 | dark
        out.append(bits)
    return tuple(out)
