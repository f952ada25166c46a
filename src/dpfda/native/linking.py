"""Machine code to a shared object (ELF, 64 bits, little endian), without a linker: a machine that builds may have none.

Kernels call nothing outside their own object (`support`), which leaves little of a linker's work: sections are put one after
the other, distances between them are written into the code, and a table names the kernels. The file has three parts:
what is read (with the names), what is executed, and what is written (by the loader alone). No part is both written and
executed. The same code gives the same bytes anywhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

_PAGE = 1 << 16  # the largest page of the machines below
_MACHINES = {62: "x86-64", 183: "AArch64"}
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4  # flags of sections
_PROGRESS = 8  # a section type without bytes in the file
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551  # kinds of program headers
_HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _RELAENT, _STRSZ, _SYMENT, _SONAME = 4, 5, 6, 7, 8, 9, 10, 11, 14
_HEADER, _PROGRAM, _SYMBOL, _RELOCATION = (
    struct.Struct(form) for form in ("<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IBBHQQ", "<QQq")
)
_SECTION = struct.Struct("<IIQQQQIIQQ")
_RELATIVE = {62: 8, 183: 1027}  # relocations that the loader does: the object's own address plus a number


class LinkError(RuntimeError):
    """Code that this linker cannot put together."""


@dataclass
class _Section:
    name: str
    kind: int
    flags: int
    data: bytearray
    align: int
    link: int
    info: int
    address: int = 0


@dataclass
class _Object:
    """A relocatable object as LLVM writes it."""

    machine: int
    sections: list[_Section]
    symbols: list[tuple[str, int, int, int]] = field(default_factory=list)  # name, binding, section, value

    @classmethod
    def read(cls, code: bytes) -> _Object:
        """Take it apart."""
        header = _HEADER.unpack_from(code)
        if header[0][:6] != b"\x7fELF\x02\x01" or header[2] not in _MACHINES:
            raise LinkError("This is not an object of a known machine.")
        start, count, names = header[6], header[12], header[13]
        raw = [_SECTION.unpack_from(code, start + _SECTION.size * i) for i in range(count)]
        texts = code[raw[names][4] : raw[names][4] + raw[names][5]]
        made = cls(header[2], [])
        for name, kind, flags, _, offset, size, link, info, align, _ in raw:
            data = bytearray(size) if kind == _PROGRESS else bytearray(code[offset : offset + size])
            made.sections.append(_Section(_text(texts, name), kind, flags, data, max(align, 1), link, info))
        table = next(section for section in made.sections if section.kind == 2)
        texts = bytes(made.sections[table.link].data)
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(table.data):
            made.symbols.append((_text(texts, name), info >> 4, section, value))
        return made

    def relocations(self) -> list[tuple[_Section, int, int, int, int]]:
        """Section, place in it, kind, symbol and addend of every distance or address to be written."""
        return [
            (self.sections[table.info], place, info & 0xFFFFFFFF, info >> 32, addend)
            for table in self.sections
            if table.kind == 4 and self.sections[table.info].flags & _ALLOC
            for place, info, addend in _RELOCATION.iter_unpack(table.data)
        ]


def link(code: bytes, name: str, prefix: str) -> bytes:
    """A shared object of this name that shows the symbols with a prefix."""
    given = _Object.read(code)
    exported = sorted(s for s in given.symbols if s[1] == 1 and s[2] and s[0].startswith(prefix))
    names = b"\0" + b"".join(each[0].encode() + b"\0" for each in exported) + name.encode() + b"\0"
    fixed = [each for each in given.relocations() if each[2] == (1 if given.machine == 62 else 257)]
    heads = _HEADER.size + 5 * _PROGRAM.size
    hash_at = _up(heads, 8)
    table_at = _up(hash_at + 4 * (4 + len(exported)), 8)
    names_at = table_at + _SYMBOL.size * (1 + len(exported))
    rela_at = _up(names_at + len(names), 8)
    parts = [_placed(given, 0, _up(rela_at + _RELOCATION.size * len(fixed), 64))]
    parts.append(_placed(given, _EXECUTE, _up(parts[0][1], _PAGE)))
    dynamic_at = _up(parts[1][1], _PAGE)
    dynamic_size = 16 * 11
    parts.append(_placed(given, _WRITE, _up(dynamic_at + dynamic_size, 64)))
    image = bytearray(parts[2][1])
    _relocate(given, image, fixed, rela_at)
    for section in given.sections:
        if section.flags & _ALLOC:
            image[section.address : section.address + len(section.data)] = section.data
    _write_tables(image, given, exported, names, (hash_at, table_at, names_at))
    entries = [
        (_SONAME, names.index(name.encode())), (_HASH, hash_at), (_STRTAB, names_at), (_SYMTAB, table_at),
        (_STRSZ, len(names)), (_SYMENT, _SYMBOL.size), (_RELA, rela_at), (_RELASZ, _RELOCATION.size * len(fixed)),
        (_RELAENT, _RELOCATION.size), (24, 0), (0, 0),
    ]  # fmt: skip
    image[dynamic_at : dynamic_at + dynamic_size] = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    text_at, data_end = _up(parts[0][1], _PAGE), parts[2][1]
    segments = [
        (_LOAD, 4, 0, parts[0][1], _PAGE), (_LOAD, 5, text_at, parts[1][1] - text_at, _PAGE),
        (_LOAD, 6, dynamic_at, data_end - dynamic_at, _PAGE), (_DYNAMIC, 6, dynamic_at, dynamic_size, 8),
        (_STACK, 6, 0, 0, 16),
    ]  # fmt: skip
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    _HEADER.pack_into(image, 0, ident, 3, given.machine, 1, 0, _HEADER.size, 0, 0, 64, _PROGRAM.size, 5, 64, 0, 0)
    for i, (kind, flags, start, size, align) in enumerate(segments):
        place = _HEADER.size + _PROGRAM.size * i
        _PROGRAM.pack_into(image, place, kind, flags, start, start, start, size, size, align)
    return bytes(image)


def _placed(given: _Object, which: int, start: int) -> tuple[int, int]:
    """Give addresses to the sections that are read (0), executed or written; where they start and end."""
    end = start
    for section in given.sections:
        if section.flags & _ALLOC and section.flags & (_EXECUTE | _WRITE) == which and section.data:
            section.address = end = _up(end, section.align)
            end += len(section.data)
    return start, end


def _write_tables(
    image: bytearray, given: _Object, exported: list[tuple[str, int, int, int]], names: bytes, at: tuple[int, int, int]
) -> None:
    """The symbols by name, all in one chain of the loader's hash table."""
    hash_at, table_at, names_at = at
    count = 1 + len(exported)
    chain = [count - 1, 0, *range(count - 1)] if exported else [0, 0]
    struct.pack_into(f"<II{len(chain)}I", image, hash_at, 1, count, *chain)
    for i, (name, _, section, value) in enumerate(exported, start=1):
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        address = given.sections[section].address + value
        _SYMBOL.pack_into(image, table_at + _SYMBOL.size * i, place, (1 << 4) | 2, 0, 2, address, 0)
    image[names_at : names_at + len(names)] = names


def _relocate(given: _Object, image: bytearray, fixed: list[tuple[_Section, int, int, int, int]], rela_at: int) -> None:
    """Write distances into the sections, and into a table what the loader has to add the object's address to."""
    for section, place, kind, symbol, addend in given.relocations():
        name, _, home, value = given.symbols[symbol]
        if not home:
            raise LinkError(f"A kernel calls {name}, which is not in the object.")
        if home == 0xFFF1 or home >= 0xFF00:
            raise LinkError(f"{name} is in no section.")
        target = given.sections[home].address + value + addend
        if (section, place, kind, symbol, addend) not in fixed:
            _write_distance(given.machine, section.data, place, kind, target, section.address + place)
    for i, (section, place, _, symbol, addend) in enumerate(fixed):
        if not section.flags & _WRITE:
            raise LinkError(f"{section.name} holds an address and cannot be written.")
        _, _, home, value = given.symbols[symbol]
        target = given.sections[home].address + value + addend
        _RELOCATION.pack_into(
            image, rela_at + _RELOCATION.size * i, section.address + place, _RELATIVE[given.machine], target
        )


def _write_distance(machine: int, data: bytearray, place: int, kind: int, target: int, here: int) -> None:
    if machine == 62 and kind in (2, 4):  # PC32, PLT32
        struct.pack_into("<i", data, place, target - here)
    elif (machine == 62 and kind == 24) or (machine == 183 and kind == 260):  # PC64, PREL64
        struct.pack_into("<q", data, place, target - here)
    elif machine == 183 and kind == 261:  # PREL32
        struct.pack_into("<i", data, place, target - here)
    elif machine == 183 and kind in _LOW_BITS:
        (word,) = struct.unpack_from("<I", data, place)
        struct.pack_into("<I", data, place, word | ((target & 0xFFF) >> _LOW_BITS[kind]) << 10)
    elif machine == 183 and kind == 275:  # the page of an address
        pages = (target >> 12) - (here >> 12)
        (word,) = struct.unpack_from("<I", data, place)
        struct.pack_into("<I", data, place, word | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)
    elif machine == 183 and kind in (282, 283):  # jumps and calls
        (word,) = struct.unpack_from("<I", data, place)
        struct.pack_into("<I", data, place, word | (target - here) >> 2 & 0x3FFFFFF)
    else:
        raise LinkError(f"Relocations of kind {kind} of {_MACHINES[machine]} are not known here.")


_LOW_BITS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # the lowest 12 bits of an address, in units of 2^n bytes


def _text(texts: bytes, start: int) -> str:
    return texts[start : texts.index(b"\0", start)].decode()


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
