#!/usr/bin/env bash
# clang-format over all sources and clang-tidy over all of src, tests included; both must be clean. clang-tidy reads a
# folder at a time, because most of its time goes into headers. What it found clean is remembered by content, so a folder
# that did not change with its headers is not looked at again. VODA_ANALYZER=1 runs the static analyzer instead.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files --cached --others --exclude-standard '*.cc' '*.h' | xargs clang-format-14 --dry-run --Werror

# Both are about files as they are, not about a folder at a time.
checks=-bugprone-suspicious-include,-bugprone-forward-declaration-namespace
[ -z "${VODA_ANALYZER:-}" ] || checks='clang-analyzer-*'
cmake --preset lint >/dev/null
headers=$( (cat .clang-tidy; git ls-files --cached --others --exclude-standard 'src/*.h' 'tests/*.h' | xargs cat) |
          sha256sum | cut -c1-16)
cache=build/tidy/$headers${VODA_ANALYZER:+-analyzer}
mkdir -p "$cache"
tidy() {
  local sources=$1 sum
  [[ $1 != */Unity/* ]] || sources=$(sed -n 's/^#include "\(.*\)"$/\1/p' "$1")
  sum=$( (echo "$1"; xargs cat <<<"$sources") | sha256sum | cut -c1-32)
  [ -e "$2/$sum" ] && return 0
  clang-tidy-14 --quiet --checks="$3" -p build/lint "$1" 2>/dev/null || { echo "lint: clang-tidy found something in the folder of $1"; return 1; }
  touch "$2/$sum"
}
export -f tidy
# The longest first, so that no core waits for the other at the end.
/usr/bin/python3 -c '
import json, os
files = {one["file"] for one in json.load(open("build/lint/compile_commands.json"))}
print(*sorted(files, key=lambda file: ("/Unity/" not in file, -os.path.getsize(file), file)), sep="\n")' |
  xargs -P "$(nproc)" -I{} bash -c 'tidy "$1" "$2" "$3"' _ {} "$cache" "$checks"
