#!/bin/sh
# Installs dpfda from a source tree into a virtual environment of its own, with exactly the pinned packages.
#   sh deploy/oci/steps.sh SOURCE TARGET
set -eu
source_tree=$1
target=$2
python3 -m venv "$target"
pip="$target/bin/python -m pip --quiet --disable-pip-version-check"
built=$(mktemp -d)
# what builds the package is pinned as well, and is at hand when the kernels are compiled
$pip install -c "$source_tree/constraints.txt" hatchling numpy scipy numba
$pip wheel --no-deps --no-build-isolation --wheel-dir "$built" "$source_tree"
$pip install -c "$source_tree/constraints.txt" "$(echo "$built"/dpfda-*.whl)[federated,console,postgres]"
rm -r "$built"
"$target/bin/dpfda" --version
