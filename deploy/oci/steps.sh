#!/bin/sh
# Installs dpfda from a source tree into a virtual environment of its own, with exactly the pinned packages.
#   sh deploy/oci/steps.sh SOURCE TARGET
set -eu
source_tree=$1
target=$2
python3 -m venv "$target"
"$target/bin/python" -m pip install --quiet --disable-pip-version-check -c "$source_tree/constraints.txt" "$source_tree[federated,console,postgres]"
"$target/bin/dpfda" --version
