"""The room graph: rooms as boxes, layers as rows, imports as lines. `python tests/helpers/house.py` redraws it.

A room is a folder of src/dpfda; loose modules at its root are the foundation. Imports inside functions and under
TYPE_CHECKING count, and so does a module that is named in a string (commands and FLARE's components are found that way).
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import grimp

from dpfda.audit.proofs import guarded

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dpfda"
PICTURE = ROOT / "docs" / "images" / "house.svg"
Edges = Counter[tuple[str, str]]

CAPTIONS = {
    "cli": "commands",
    "reproduce": "the paper's experiments",
    "audit": "attacks on ourselves",
    "report": "figures and pages",
    "federation": "studies across sites",
    "native": "kernels ahead of time",
    "estimators": "the front door",
    "planning": "what a study will cost",
    "inference": "what a release says",
    "methods": "what to ask, how to learn",
    "silo": "the border",
    "transports": "messages there and back",
    "protocol": "public values both sides share",
    "privacy": "bounds, noise, prices, ledger",
    "basis": "functions on a domain",
    "curves": "what the data are",
}
_MIDDLES = {
    "cli": 500, "report": 860, "reproduce": 620, "audit": 380, "federation": 140, "estimators": 540, "planning": 800,
    "inference": 130, "transports": 350, "silo": 580, "methods": 860, "protocol": 580, "basis": 200, "privacy": 520,
    "curves": 840, "native": 180,
}  # fmt: skip
_WIDTH, _BOX, _TALL, _PITCH, _TOP = 1000, 200, 52, 92, 66

_STYLE = """
  .page { fill: #ffffff; } .row { fill: #f4f5f7; } .room { fill: #ffffff; stroke: #8b93a1; stroke-width: 1.3; }
  .trusted { fill: #d9ecdf; stroke: #2e7d4f; stroke-width: 2; }
  .part { fill: url(#stripes); stroke: #2e7d4f; stroke-width: 2; }
  .stripe { stroke: #d9ecdf; } .under { fill: #ffffff; }
  .name { fill: #16202c; font-weight: 600; font-size: 16px; } .caption { fill: #4d5866; font-size: 12px; }
  .strong { stroke: #4a5f7d; stroke-width: 1.7; fill: none; } .faint { stroke: #b3bdca; stroke-width: 0.9; fill: none; }
  .tip { fill: #4a5f7d; } text { font-family: 'Helvetica Neue', Helvetica, Arial, sans-serif; text-anchor: middle; }
  .left { text-anchor: start; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #11161d; } .row { fill: #1a212b; } .room { fill: #232c38; stroke: #77849a; } .under { fill: #232c38; }
    .trusted { fill: #1d4330; stroke: #6fc795; } .part { stroke: #6fc795; } .stripe { stroke: #1d4330; }
    .name { fill: #f0f3f7; } .caption { fill: #b4bfcc; }
    .strong { stroke: #9db4d6; } .faint { stroke: #45525f; } .tip { fill: #9db4d6; }
  }
"""


def module_edges() -> set[tuple[str, str]]:
    """Which module imports which, in whatever way."""
    graph = grimp.build_graph("dpfda", cache_dir=None)
    edges = {(one, other) for one in graph.modules for other in graph.find_modules_directly_imported_by(one)}
    for path in PACKAGE.rglob("*.py"):
        importer = ".".join(("dpfda", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("dpfda."):
                named = node.value if node.value in graph.modules else node.value.rpartition(".")[0]
                edges |= {(importer, named)} if named in graph.modules else set()
    return {(one, other) for one, other in edges if one.count(".") and other.count(".")}  # the root's names are lazy


@cache
def room_edges() -> Edges:
    """Imports from room to room, with their number."""
    rooms = ((one.split(".")[1], other.split(".")[1]) for one, other in module_edges())
    return Counter((one, other) for one, other in rooms if one != other)


def layers() -> list[list[str]]:
    """The layers contract of pyproject.toml, highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in row.split("|")] for row in rows]


def reachable(edges: set[tuple[str, str]], start: str) -> set[str]:
    """Every room to which lines lead from `start`."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        here = ahead.pop()
        new = {other for one, other in edges if one == here} - found
        found |= new
        ahead += new
    return found


def trusted_share(room: str) -> float:
    """Which share of a room's modules belongs to the trust base."""
    modules = {str(path.relative_to(PACKAGE)) for path in (PACKAGE / room).rglob("*.py")}
    return len(modules & set(guarded())) / len(modules)


@cache
def draw() -> str:
    """The picture as SVG, the same for the same code."""
    rows = [[room for room in row if room in CAPTIONS] for row in layers()]
    rows = [row for row in rows if row]
    foundation = sorted(room for row in layers() for room in row if room not in CAPTIONS and room != "__main__")
    tops = {room: _TOP + _PITCH * index for index, row in enumerate(rows) for room in row}
    edges = {edge for edge in room_edges() if set(edge) <= set(CAPTIONS)}
    bottom = _TOP + _PITCH * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 112}" role="img">',
        "<title>The rooms of dpfda, a room importing only from rooms below it</title>",
        f"<style>{_STYLE}</style>",
        '<defs><pattern id="stripes" width="12" height="12" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="under" width="12" height="12"/><line class="stripe" x1="3" y1="0" x2="3" y2="12" stroke-width="6"/>'
        '</pattern><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0.6 L8 4 L0 7.4 Z"/></marker></defs>',
        f'<rect class="page" width="{_WIDTH}" height="{bottom + 112}" rx="14"/>',
        f'<text class="caption left" x="24" y="32">{len(edges)} lines between {len(CAPTIONS)} rooms, all of them downwards. '
        "Pale: where darker lines lead in steps. Green: the trust base (striped: a part of the room).</text>",
    ]
    for index in range(len(rows)):
        y = _TOP + _PITCH * index - 10
        parts.append(f'<rect class="row" x="16" y="{y}" width="{_WIDTH - 32}" height="{_TALL + 20}" rx="8"/>')
    direct = {edge for edge in edges if not _has_detour(edges, edge)}
    parts += [_line(edge, tops, "faint") for edge in sorted(edges - direct)]
    parts += [_line(edge, tops, "strong") for edge in sorted(direct)]
    parts += [_box(room, tops[room]) for row in rows for room in row]
    parts += [
        f'<rect class="room" x="16" y="{bottom}" width="{_WIDTH - 32}" height="{_TALL}" rx="8"/>',
        f'<text class="name" x="{_WIDTH // 2}" y="{bottom + 23}">{"  ·  ".join(foundation)}</text>',
        f'<text class="caption" x="{_WIDTH // 2}" y="{bottom + 42}">the foundation: every room may stand on it '
        "(lines not drawn)</text>",
        f'<text class="caption" x="{_WIDTH // 2}" y="{bottom + 88}">drawn from the imports by tests/helpers/house.py</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _has_detour(edges: set[tuple[str, str]], edge: tuple[str, str]) -> bool:
    return edge[1] in reachable(edges - {edge}, edge[0])


def _line(edge: tuple[str, str], tops: dict[str, int], kind: str) -> str:
    (x0, x1), y0, y1 = (_MIDDLES[room] for room in edge), tops[edge[0]] + _TALL, tops[edge[1]]
    lean = max(-70, min(70, (x1 - x0) // 4))
    x0, x1, bend = x0 + lean, x1 - lean, max(24, (y1 - y0) // 2)
    tip = ' marker-end="url(#tip)"' if kind == "strong" else ""
    return f'<path class="{kind}" d="M{x0} {y0} C{x0} {y0 + bend} {x1} {y1 - bend} {x1} {y1}"{tip}/>'


def _box(room: str, top: int) -> str:
    share, left = trusted_share(room), _MIDDLES[room] - _BOX // 2
    kind = "trusted" if share == 1 else "part" if share else "room"
    return (
        f'<rect class="{kind}" x="{left}" y="{top}" width="{_BOX}" height="{_TALL}" rx="7"/>'
        f'<text class="name" x="{_MIDDLES[room]}" y="{top + 23}">{room}</text>'
        f'<text class="caption" x="{_MIDDLES[room]}" y="{top + 41}">{CAPTIONS[room]}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"Drew {PICTURE.relative_to(ROOT)}")
