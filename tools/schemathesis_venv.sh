#!/usr/bin/env bash
# Installs schemathesis, which feeds the API of a running Voda with requests made from docs/openapi.json, into a virtual
# environment for tests/live/openapi_test.py. Usage: tools/schemathesis_venv.sh [FOLDER=build/schemathesis]
set -euo pipefail
cd "$(dirname "$0")/.."

wanted="schemathesis==4.32.5 hypothesis==6.170.15"
folder=${1:-build/schemathesis}
[ "$(cat "$folder/voda.stamp" 2>/dev/null)" != "$wanted" ] || exit 0

echo "schemathesis: installing into $folder"
rm -rf "$folder"
/usr/bin/python3 -m venv "$folder"
# shellcheck disable=SC2086  # two words
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check $wanted
echo "$wanted" >"$folder/voda.stamp"
