#!/usr/bin/env bash
# Lets DaemonSets tolerate Voda's taints (toleration.yaml). Those that do already are left alone.
# Usage: deploy/taints/tolerate.sh [NAMESPACE/NAME ...]   (default: all DaemonSets)
set -euo pipefail
patch=$(cat "$(dirname "$0")/toleration.yaml")
first=$'- {op: add, path: /spec/template/spec/tolerations, value: []}\n'  # where there is no list to append to
listed='{range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}'
tolerated='{range .spec.template.spec.tolerations[*]}{.key}|{.operator}|{.effect}{"\n"}{end}'

if [ $# -gt 0 ]; then
  sets=("$@")
else
  mapfile -t sets <<<"$(kubectl get daemonsets --all-namespaces -o "jsonpath=$listed")"
fi
for set in "${sets[@]}"; do
  [ -n "$set" ] || continue
  namespace=${set%%/*} name=${set#*/}
  [ "$namespace/$name" = "$set" ] || { echo "$set: write NAMESPACE/NAME" >&2; exit 2; }
  tolerations=$(kubectl -n "$namespace" get daemonset "$name" -o "jsonpath=$tolerated")
  if grep -qxE '(vodascheduler/hostname)?\|Exists\|' <<<"$tolerations"; then
    echo "$set tolerates it already"
    continue
  fi
  kubectl -n "$namespace" patch daemonset "$name" --type json \
    --patch "$([ -n "$tolerations" ] || printf '%s' "$first")"$'\n'"$patch" >/dev/null
  echo "$set patched"
done
