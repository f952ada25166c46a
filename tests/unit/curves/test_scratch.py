"""What a stash keeps in memory is what a scratch file would have kept."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.curves.tables.scratch import ScratchFile, Stash

ARRAYS = [
    np.arange(5, dtype=np.float64),
    np.empty(0),
    np.arange(12, dtype=np.float64).reshape(3, 4).T,
    np.full(7, -1.5),
]


def keep(store: ScratchFile | Stash) -> tuple[list[int], bytes, bytes]:
    """Where each array begins, all bytes, and those from the third number on."""
    places = [store.append(each) for each in ARRAYS]
    some = np.empty(4)
    store.read_into(some, 16)
    whole = store.map_array("<f8", (24,))
    return places, whole.tobytes(), some.tobytes()


@pytest.mark.parametrize("most", [0, 8, 40, 136, 191, 192, 10_000])
def test_a_stash_of_any_room_keeps_what_a_scratch_file_keeps(most: int, tmp_path) -> None:
    stash = Stash(tmp_path, most)
    assert keep(stash) == keep(ScratchFile(tmp_path))
    assert stash.on_disk == (most < 24 * 8)
    assert stash.size == 24 * 8


@pytest.mark.parametrize("most", [0, 10_000])
def test_what_was_mapped_lives_on_and_cannot_be_changed(most: int, tmp_path) -> None:
    stash = Stash(tmp_path, most)
    stash.append(np.arange(6, dtype=np.float64))
    whole = stash.map_array("<f8", (2, 3))
    stash.close()
    assert whole.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="read-only"):
        whole[0, 0] = 1


def test_a_stash_within_its_room_leaves_no_file(tmp_path) -> None:
    stash = Stash(tmp_path, 10_000)
    stash.append(np.arange(6, dtype=np.float64))
    assert not stash.on_disk
    assert not list(tmp_path.iterdir())
