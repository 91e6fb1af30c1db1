#!/usr/bin/env bash
# clang-format and clang-tidy over the sources; both must be clean. Tidy results are cached by content, so a file that
# did not change with its headers is not looked at again. VODA_ANALYZER=1 adds the static analyzer, five times slower.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files --cached --others --exclude-standard '*.cc' '*.h' | xargs clang-format-14 --dry-run --Werror

checks=()
[ -z "${VODA_ANALYZER:-}" ] || checks=(--checks='clang-analyzer-*')
cmake --preset clang-release -DVODA_TESTS=OFF >/dev/null
headers=$( (cat .clang-tidy; git ls-files --cached --others --exclude-standard 'src/*.h' | xargs cat) | sha256sum | cut -c1-16)
cache=build/tidy/$headers${VODA_ANALYZER:+-analyzer}
mkdir -p "$cache"
tidy() {
  local sum
  sum=$(sha256sum "$1" | cut -c1-32)
  [ -e "$2/$sum" ] && return 0
  clang-tidy-14 --quiet ${3:-} -p build/clang-release "$1" 2>/dev/null || { echo "lint: clang-tidy found something in $1"; return 1; }
  touch "$2/$sum"
}
export -f tidy
git ls-files --cached --others --exclude-standard 'src/*.cc' | grep -v '_test\.cc$' |
  xargs -P "$(nproc)" -I{} bash -c 'tidy "$1" "$2" "$3"' _ {} "$cache" "${checks[*]:-}"
