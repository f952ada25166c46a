"""Tables in an object store: a real S3 server on this machine, fsspec's own store in memory, and file:// URLs."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpfda import Ledger, Silo
from dpfda.curves.tables import Domain, Reading, find_source, load_curves
from dpfda.curves.tables.stores import describe_state, forget_copies, open_locally
from dpfda.errors import InvalidInput, SourceError
from dpfda.protocol.messages import Query
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.silo.data_binding import OTHER_DATA

READING = Reading(Domain(0, 1), (-1.0, 2.0), id="pid", x="x", y="y")
KEY, SECRET = bytes(32), "wJalrXUtnFEMI-a-secret"


def table(rows: int = 3000, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"pid": rng.integers(0, 200, rows), "x": rng.random(rows), "y": rng.normal(size=rows)})


@pytest.fixture(scope="module")
def server():
    from moto.server import ThreadedMotoServer

    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    yield "http://{}:{}".format(*made.get_host_and_port())
    made.stop()


@pytest.fixture
def bucket(server, monkeypatch, tmp_path):
    """An S3 bucket; what a user's environment holds to reach it."""
    import fsspec
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "an-id",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DPFDA_SCRATCH", str(tmp_path))
    s3fs.S3FileSystem.clear_instance_cache()
    store = fsspec.filesystem("s3")
    store.mkdir("clinic")
    yield store
    forget_copies()
    store.rm("clinic", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def memory(monkeypatch, tmp_path):
    import fsspec

    monkeypatch.setenv("DPFDA_SCRATCH", str(tmp_path))
    store = fsspec.filesystem("memory")
    yield store
    forget_copies()
    store.rm("/clinic", recursive=True)


@pytest.fixture(params=["s3", "memory"])
def store(request):
    return request.param, request.getfixturevalue({"s3": "bucket", "memory": "memory"}[request.param])


def put(store, name: str, file: Path) -> None:
    store.pipe(name, file.read_bytes())


def load(location: str | Path, reading: Reading = READING, **how):
    return load_curves(find_source(str(location)), reading, **how)


def same(one, other) -> bool:
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("x", "y", "offsets", "design"))
    return arrays and one.fingerprint(KEY) == other.fingerprint(KEY)


@pytest.mark.parametrize("name", ["visits.csv", "visits.csv.gz", "visits.parquet", "visits.arrow", "visits.xlsx"])
def test_an_object_gives_the_bits_of_the_file(store, tmp_path, name) -> None:
    scheme, system = store
    file, frame = tmp_path / name, table()
    write = {
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
        "xlsx": frame.write_excel,
        "csv": frame.write_csv,
    }
    if name.endswith(".gz"):
        import gzip

        file.write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        write[file.suffix[1:]](file)
    put(system, f"clinic/{name}", file)
    assert same(load(f"{scheme}://clinic/{name}").curves, load(file).curves)


@pytest.mark.parametrize("slash", ["", "/"])
def test_folders_are_read_with_the_columns_in_their_names_as_texts(store, tmp_path, slash) -> None:
    scheme, system = store
    from dpfda.curves.tables import Covariate

    arms = Covariate("arm", levels=("01", "1", "a b"))
    reading = Reading(Domain(0, 1), (-1.0, 2.0), id="pid", x="x", y="y", covariates=(arms,))
    for seed, arm in enumerate(["01", "1", "a%20b"]):
        file = tmp_path / "visits" / f"arm={arm}" / "part 0.parquet"
        file.parent.mkdir(parents=True)
        table(seed=seed).write_parquet(file)
        put(system, f"clinic/visits/arm={arm}/part 0.parquet", file)
    system.pipe("clinic/visits/_SUCCESS", b"")
    there, here = load(f"{scheme}://clinic/visits{slash}", reading), load(tmp_path / "visits", reading)
    assert same(there.curves, here.curves)
    assert (there.functions, there.owner_notes) == (here.functions, here.owner_notes)


def test_a_store_leaves_nothing_on_disk_but_links_while_it_is_read(bucket, tmp_path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    bucket.pipe("clinic/visits.csv", table().write_csv().encode())
    source = find_source("s3://clinic/visits.csv")
    with open_locally(source, scratch) as local:
        path = local.path
        assert path.name == "visits.csv"
        assert path.read_bytes().startswith(b"pid,x,y")
        (folder,) = scratch.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert all(each.is_symlink() for each in folder.iterdir())
        assert path.stat().st_mode & 0o777 == 0o600
    handles = len(os.listdir("/proc/self/fd"))
    forget_copies()
    assert list(scratch.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) < handles


def test_a_copy_is_used_again_until_an_object_changes(bucket, tmp_path) -> None:
    source = find_source("s3://clinic/visits/")
    bucket.pipe("clinic/visits/1.parquet", _parquet(table(seed=1)))
    with open_locally(source) as first, open_locally(source) as again:
        assert first is again
        with first.files[0].open() as path:
            before, state = Path(path), describe_state(source)
        assert describe_state(source) == state
        bucket.pipe("clinic/visits/1.parquet", _parquet(table(seed=2)))
        assert describe_state(source) != state
        with open_locally(source) as later, later.files[0].open() as path:
            assert later is not first
            assert pl.read_parquet(path).equals(table(seed=2))
        assert pl.read_parquet(before).equals(table(seed=1)), "who reads keeps what was read first"
    assert not before.exists()
    state = describe_state(source)
    bucket.pipe("clinic/visits/2.parquet", _parquet(table(seed=3)))
    assert describe_state(source) != state
    assert load("s3://clinic/visits").curves.y.size == 6000


def _parquet(frame: pl.DataFrame) -> bytes:
    import io

    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


TERMS = StudyTerms(
    "published", (0.0, 1.0), (-1.0, 2.0), (SiloTerms("clinic", 200, 1.0, 1e-3, 4.0),), n_basis=4,
    constants=PublishedConstants(C_T=1.0),
)  # fmt: skip


def test_a_run_is_bound_to_the_rows_that_were_in_the_store(bucket, tmp_path) -> None:
    """As with files: it goes on over the same rows, from the store or from a file, and ends if one value is another."""
    frame, place, file = table(), "s3://clinic/visits.parquet", tmp_path / "visits.parquet"
    frame.write_parquet(file)
    put(bucket, "clinic/visits.parquet", file)
    ledger = Ledger.create(tmp_path / "visits.ledger", 1.0, 1e-3)

    def ask(location, number: int):
        silo = Silo(load(location).curves, epsilon=1.0, delta=1e-3, name="clinic", ledger=ledger, points_per_curve=4.0)
        silo.join(TERMS, "run")
        return silo.release(Query("run", number, {"iterate": np.zeros(4)}))

    first = ask(place, 0)
    assert np.array_equal(ask(place, 0).values, first.values), "an answer that was paid for is given again"
    ask(file, 1)
    bucket.pipe("clinic/visits.parquet", _parquet(frame.with_columns(y=pl.col("y") + 1e-9)))
    with pytest.raises(SourceError, match=OTHER_DATA[:20]):
        ask(place, 2)


def test_an_object_that_changes_while_it_is_copied_is_refused(memory, monkeypatch) -> None:
    memory.pipe("clinic/visits.csv", b"pid,x,y\n1,0.5,1\n")
    get = type(memory).get_file

    def late(self, place, *rest, **how):
        get(self, place, *rest, **how)
        self.pipe("clinic/visits.csv", b"pid,x,y\n1,0.5,2\n")

    monkeypatch.setattr(type(memory), "get_file", late)
    with pytest.raises(SourceError, match="changed while it was read"):
        load("memory://clinic/visits.csv")


@pytest.mark.parametrize(
    ("location", "words"),
    [
        (f"s3://an-id:{SECRET}@clinic/visits.parquet", "without credentials"),
        (f"s3://clinic/visits.parquet?secret={SECRET}", "without credentials"),
        ("s3://clinic", "bucket and what is in it"),
        ("s3://", "bucket and what is in it"),
        ("file://host/visits.csv", "absolute path"),
        ("gopher://host/visits.csv", "names the database 'gopher'"),
    ],
)
def test_urls_that_hold_too_much_or_too_little_are_refused_without_their_secrets(location, words) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        find_source(location)
    assert SECRET not in str(refusal.value)


def test_a_query_or_a_sheet_does_not_go_with_objects() -> None:
    with pytest.raises(InvalidInput, match="--query goes with a database"):
        find_source("s3://clinic/visits.parquet", "SELECT 1")
    with pytest.raises(InvalidInput, match="--sheet goes with a workbook"):
        find_source("s3://clinic/visits.parquet", sheet="visits")


def test_what_a_store_refuses_is_one_sentence_without_credentials(bucket, monkeypatch) -> None:
    import s3fs

    with pytest.raises(InvalidInput, match=r"There is no object s3://clinic/none\.parquet"):
        load("s3://clinic/none.parquet")
    with pytest.raises(InvalidInput, match="There is no object"):
        load("s3://no-such-bucket/none.parquet")
    bucket.pipe("clinic/empty/_SUCCESS", b"")
    with pytest.raises(InvalidInput, match=r"has no \.parquet files"):
        load("s3://clinic/empty/")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(SourceError, match="cannot be read") as refusal:
        load("s3://clinic/visits.parquet")
    assert SECRET not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_store_whose_package_is_missing_is_named() -> None:
    with pytest.raises(InvalidInput, match="pip install gcsfs"):
        load("gs://clinic/visits.parquet")


def test_a_file_url_is_the_file(tmp_path) -> None:
    file = tmp_path / "my visits.parquet"
    table().write_parquet(file)
    source = find_source(file.as_uri())
    assert (source.path, source.default_ledger) == (file, tmp_path / "my visits.parquet.ledger")
    assert same(load(file.as_uri()).curves, load(file).curves)


def test_the_command_fits_from_a_bucket_and_writes_no_credentials(bucket, tmp_path) -> None:
    bucket.pipe("clinic/visits.parquet", _parquet(table()))
    words = "--id pid --x x --y y --domain 0:1 --y-bounds=-1:2 --epsilon 1 --delta 1e-5 --json fit.json"
    command = [sys.executable, "-m", "dpfda"]
    budget = ["budget", "init", "s3://clinic/visits.parquet", "--epsilon", "2", "--delta", "1e-4"]
    fit = ["fit", "s3://clinic/visits.parquet", *words.split(), "--report", "fit.html"]
    for arguments in (budget, fit):
        done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert (tmp_path / "visits.parquet.ledger").exists()
    assert json.loads((tmp_path / "fit.json").read_text())
    assert [file.name for file in tmp_path.iterdir() if file.is_file() and SECRET.encode() in file.read_bytes()] == []
    assert not list(tmp_path.glob("dpfda-links-*"))


def test_dask_workers_read_the_store_by_themselves(bucket, tmp_path) -> None:
    from dask_cluster import two_workers

    from dpfda.silo.cluster import DaskCurves

    bucket.pipe("clinic/visits/1.parquet", _parquet(table(seed=1)))
    bucket.pipe("clinic/visits/2.parquet", _parquet(table(seed=2)))
    here = load("s3://clinic/visits").curves
    with two_workers(tmp_path / "dask") as client:
        spread = DaskCurves.from_source(client, "s3://clinic/visits", READING, parts=3)
        assert spread.fingerprint(KEY) == here.fingerprint(KEY)
    gc.collect()
