"""The house: rooms in layers, no cycles, and a picture and a page that show it as it is."""

from __future__ import annotations

import re

import house

PAGE = house.ROOT / "docs" / "architecture.md"
MOST_LINES = 117  # between rooms and modules of the foundation; a new one is a decision, so change it on purpose


def test_no_room_leads_back_to_itself() -> None:
    edges = set(house.room_edges())
    rooms = {room for edge in edges for room in edge}
    assert [room for room in sorted(rooms) if room in house.reachable(edges, room)] == []


def test_every_import_leads_downwards_even_a_lazy_one_or_one_by_name() -> None:
    level = {room: index for index, row in enumerate(house.layers()) for room in row}
    assert [edge for edge in sorted(house.room_edges()) if level[edge[0]] >= level[edge[1]]] == []


def test_the_rooms_have_no_more_lines_between_them_than_were_decided() -> None:
    assert len(house.room_edges()) <= MOST_LINES


def test_every_folder_is_a_room_with_a_caption_and_a_place_in_the_picture() -> None:
    folders = {path.parent.name for path in house.PACKAGE.glob("*/__init__.py")}
    assert folders == set(house.CAPTIONS)


def test_the_picture_is_current() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.draw(), "run `python tests/helpers/house.py`"


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    assert re.findall(r"(?:href|src|url)\W+http", house.draw()) == []


def test_the_page_has_a_row_for_every_room_and_shows_the_picture() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE)) == set(house.CAPTIONS)
    assert "images/house.svg" in page


def test_every_file_and_function_of_the_three_walks_is_there() -> None:
    walks = PAGE.read_text(encoding="utf-8").split("## Three walks")[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`: `([\w.]+)`", walks, re.MULTILINE)
    assert len(steps) >= 15
    for file, name in steps:
        source = (house.PACKAGE / file).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(?:def|class) {part}\b", source, re.MULTILINE), f"{file} has no {name}"
