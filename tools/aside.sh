#!/usr/bin/env bash
# Runs a command on what the machine has to spare: it gets a processor when nothing else wants it. Start it in a session
# of its own (`setsid tools/aside.sh COMMAND &`): Linux divides the processors among sessions before it looks at the
# priorities of processes, so the session must step back as well.
set -euo pipefail
{ echo 19 >/proc/self/autogroup; } 2>/dev/null || true
exec chrt --idle 0 "$@"
