#!/bin/sh
# Installs dpfda from a source tree into a virtual environment of its own, with exactly the pinned packages.
#   sh deploy/oci/steps.sh SOURCE TARGET
set -eu
source_tree=$1
target=$2
python3 -m venv "$target"
install="$target/bin/python -m pip install --quiet --disable-pip-version-check -c $source_tree/constraints.txt"
# what builds the package is pinned as well, and is at hand when the kernels are compiled
$install hatchling numpy scipy numba
$install --no-build-isolation "$source_tree[federated,console,postgres]"
"$target/bin/dpfda" --version
