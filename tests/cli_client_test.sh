#!/usr/bin/env bash
# The commands that talk to a server, against a stand-in (cli_standin.py) that answers as docs/API.md says: what they
# print, byte for byte (tests/golden/cli), what they send, and every exit code.
# Usage: cli_client_test.sh path/to/voda [update]: with `update` the golden files are written anew.
set -u
voda=$(realpath "${1:?usage: cli_client_test.sh path/to/voda [update]}")
update=${2:-}
here=$(realpath "$(dirname "$0")")
golden=$here/golden/cli
python=/usr/bin/python3
timeout=$(command -v timeout)
work=$(mktemp -d)
servers=()
cleanup() {
  for pid in "${servers[@]}"; do kill "$pid" 2> /dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT
passed=0
failed=0
pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  echo "FAILED: $*"
  sed 's/^/    stderr: /' "$work/err" 2> /dev/null | cut -c1-300 | head -5
}

# Nothing of the user's own settings may matter.
export HOME=$work/home TZ=UTC LC_ALL=C
unset VODA_SERVER VODA_TOKEN VODA_TOKEN_FILE VODA_CA_FILE XDG_CONFIG_HOME XDG_DATA_HOME NO_COLOR FORCE_COLOR
mkdir -p "$HOME"

# serve FOLDER ARGS...: a stand-in with its data folder there.
serve() {
  local folder=$1
  shift
  mkdir -p "$folder"
  rm -f "$folder/server"
  "$python" "$here/cli_standin.py" "$folder" "$@" &
  servers+=($!)
  for _ in $(seq 600); do [ -s "$folder/server" ] && return; sleep 0.1; done
  echo "the stand-in does not start"
  exit 1
}
tell() { curl -sf -X POST -H "Authorization: Bearer secret-token" -d "${2:-}" "$(cat "$VODA_HOME/server")/$1" > /dev/null; }
requests() { cat "$VODA_HOME/requests"; }
# until_true COMMAND...: waits up to a minute for it.
until_true() { for _ in $(seq 600); do "$@" > /dev/null 2>&1 && return 0; sleep 0.1; done; return 1; }

run() {
  "$timeout" 60 "$voda" "$@" > "$work/out" 2> "$work/err" < /dev/null
  code=$?
}
# ok ARGS...: exit code 0.
ok() {
  run "$@"
  if [ "$code" -eq 0 ]; then pass; else fail "voda $*: exit code $code, not 0"; fi
}
# bad CODE TEXT ARGS...: that exit code, and stderr says the text.
bad() {
  local want=$1 text=$2
  shift 2
  run "$@"
  if [ "$code" -eq "$want" ] && { [ -z "$text" ] || grep -qF -- "$text" "$work/err"; }; then pass; else
    fail "voda $*: exit code $code (want $want), stderr lacks: $text"; fi
}
# same NAME CODE ARGS...: stdout as in the golden file.
same() {
  local name=$1 want=$2
  shift 2
  run "$@"
  [ "$code" -eq "$want" ] || fail "voda $*: exit code $code, not $want"
  if [ "$update" = update ]; then mkdir -p "$golden" && cp "$work/out" "$golden/$name"; fi
  if diff "$golden/$name" "$work/out" > "$work/diff" 2>&1; then pass; else
    fail "voda $*: differs from golden/cli/$name"; head -20 "$work/diff"; fi
}
says() { if grep -qF -- "$1" "$work/out"; then pass; else fail "stdout lacks: $1"; fi; }
sent() { if requests | grep -qF -- "$1"; then pass; else fail "no request has: $1"; fi; }

export VODA_HOME=$work/data
serve "$VODA_HOME"
mnist=tensorflow2-keras-mnist-elastic-20211015-035048
resnet=resnet-20211015-035101
bert=bert-20211015-035202
odd=odd-20211015-035303
completed=done-20211015-035404

# What is printed.
same jobs.txt 0 get jobs
same jobs-wide.txt 0 get jobs -o wide
same jobs.json 0 get jobs -o json
same jobs.yaml 0 get jobs -o yaml
same jobs-name.txt 0 get jobs -o name
same job.yaml 0 get job $odd -o yaml
same jobs-two.txt 0 get jobs $bert $mnist
same jobs-active.txt 0 get jobs --active
same jobs-status.txt 0 get jobs --status failed,Completed
same jobs-type.txt 0 get jobs --gpu-type v100
same jobs-limit.txt 0 get jobs --limit 2
same jobs-missing.txt 3 get jobs $bert nope
same nodes.txt 0 get nodes
same nodes.yaml 0 get nodes -o yaml
same nodes-wide.txt 0 get nodes -o wide
same nodes-name.txt 0 get nodes -o name
same algorithms.txt 0 get algorithms
same rounds.txt 0 get rounds
same describe-job.txt 0 describe job $mnist $odd
same describe-node.txt 0 describe node b
same explain.txt 0 explain $bert
same explain-running.txt 0 explain $resnet
same explain.json 0 explain $bert -o json
same logs.txt 0 logs $mnist
same logs-tail.txt 0 logs --tail 2 --worker 3 $mnist
same logs-follow.txt 0 logs -f $mnist
same delete.txt 3 delete $resnet nope $mnist
same verbs.txt 0 hold $resnet $bert
ok resume $resnet; says "Training job resumed: $resnet"
ok set algorithm Tiresias --option threshold=5 --gpu-type v100; says "Algorithm set: Tiresias (GPU type v100)"
sent '"PUT", "path": "/api/v1/settings?gpu_type=v100", "body": "{\"algorithm\": \"Tiresias\", \"options\": {\"threshold\": \"5\"}}"'
ok set ratelimit 1.5m; says "Rate limit set: 1m30s (all GPU types)"; sent '{\"rate_limit_seconds\": 90}'
ok set priority $bert -- -3; says "priority -3"; sent '{\"priority\": -3}'
ok set size $bert --min 2 --max 6; says "2 to 6 workers"; sent '{\"min\": 2, \"max\": 6}'
ok cordon a b; says "Node cordoned: b"; sent '/api/v1/nodes/b/cordon'
ok uncordon a; says "Node ready: a"
ok drain a; says "Node draining: a"
ok add node c --gpus 2 --gpu-type v100; says "Node added: c"; sent '{\"name\": \"c\", \"gpus\": 2, \"gpu_type\": \"v100\"}'
ok remove node b; says "Node removed: b"; sent '"DELETE", "path": "/api/v1/nodes/b"'

# Every YAML is what the JSON is, by a YAML reader of its own.
for what in "get jobs" "get jobs $odd" "get nodes" "get algorithms" "get rounds" "explain $bert"; do
  # shellcheck disable=SC2086
  "$voda" $what -o json > "$work/a.json" && "$voda" $what -o yaml > "$work/a.yaml"
  if "$python" -c 'import json, sys, yaml
assert json.load(open(sys.argv[1])) == yaml.safe_load(open(sys.argv[2]))' "$work/a.json" "$work/a.yaml"; then pass; else
    fail "$what: YAML and JSON differ"; fi
done
"$python" - > "$work/hostile.json" << 'PYTHON'
import json
words = ["", " ", "yes", "No", "~", "null", "1", "1.0", "0x1f", "0o7", "1e3", "12:30", ".inf", "-", "- a", "a: b", "a:", "#", "a #b",
         "\t", "a\tb", "\n", "a\nb", "a\n", "a\n\n", " a\nb", "a\n b", "\na", "a\n \nb", "a\r\nb", "\x00", "\x1b[31m", "\x7f", "\x85", "\u2028",
         "\ufeff", "\ufffe", "\U0001F600", "\"", "'", "\\", "{", "[", "]", "&a", "*a", "!a", "|", ">", "%", "@", "`", "---", "...", "? a",
         "=", "<<", "2024-01-01", "a" * 300, "x, y", "it's", "a\u00e9b", "key: [", "--- a", "a\u2029b\nc"]
print(json.dumps({"message": "\n".join(words), "warnings": words, "progress": {word: word for word in words}}))
PYTHON
tell "__job_quietly/$odd" "$(cat "$work/hostile.json")"
"$voda" get jobs $odd -o json > "$work/a.json"; "$voda" get jobs $odd -o yaml > "$work/a.yaml"
if "$python" -c 'import json, sys, yaml
a, b, sent = json.load(open(sys.argv[1])), yaml.safe_load(open(sys.argv[2])), json.load(open(sys.argv[3]))
assert a == b, [(x, y) for x, y in zip(a["warnings"], b["warnings"]) if x != y]
assert {key: a[key] for key in sent} == sent' "$work/a.json" "$work/a.yaml" "$work/hostile.json" 2> "$work/err"; then pass; else
  fail "hostile text does not survive JSON and YAML"; fi
run get jobs $odd; if grep -q $'\x1b' "$work/out"; then fail "an escape sequence on the terminal"; else pass; fi
run describe job $odd; if grep -q $'\x1b' "$work/out"; then fail "an escape sequence on the terminal"; else pass; fi
tell "__job_quietly/$odd" '{"message": "", "warnings": [], "progress": null}'

# Colours.
FORCE_COLOR=1 run get jobs; if grep -q $'\x1b\\[32mRunning   \x1b\\[0m 1' "$work/out"; then pass; else fail "no colour"; fi
FORCE_COLOR=1 NO_COLOR=1 run get jobs; if grep -q $'\x1b' "$work/out"; then fail "colour against NO_COLOR"; else pass; fi

# create.
printf 'kind: PyTorchJob\n' > "$work/job.yaml"
printf 'kind: PyTorchJob\n---\nkind: MPIJob\n' > "$work/two.yaml"
printf 'bad: 1\n' > "$work/bad.yaml"
same create.txt 0 create -f "$work/job.yaml"
if grep -qF 'voda create: warning: ' "$work/err"; then pass; else fail "no warning"; fi
sent '"path": "/api/v1/jobs", "body": "kind: PyTorchJob\n", "type": "application/yaml"'
same create-two.txt 0 create -f "$work/two.yaml" -f "$work/job.yaml"
same create-name.txt 0 create -f "$work/two.yaml" -o name
same create-dry.txt 0 create --dry-run -f "$work/job.yaml"; sent '/api/v1/jobs?dry_run=true'
"$voda" create -f - < "$work/job.yaml" > "$work/out" 2> "$work/err"; says "Training job created: mnist-"
bad 2 "$work/bad.yaml: spec.pytorchReplicaSpecs.Worker.replicas: 0; give at least 1" create -f "$work/bad.yaml"
run create -f "$work/bad.yaml" -f "$work/job.yaml"  # the others are still created
if [ "$code" -eq 2 ] && grep -q 'Training job created' "$work/out"; then pass; else fail "bad, then good"; fi
before=$(requests | grep -c '"POST", "path": "/api/v1/jobs"')
bad 2 "cannot read $work/absent" create -f "$work/job.yaml" -f "$work/absent"
[ "$(requests | grep -c '"POST", "path": "/api/v1/jobs"')" -eq "$before" ] && pass || fail "sent before all files were read"
head -c 2000000 /dev/zero > "$work/large.yaml"
bad 2 "larger than 1 MiB" create -f "$work/large.yaml"
# An answer that is lost: the same key again, and one job.
tell __fault '{"drop": 2}'
: > "$VODA_HOME/requests"
ok create -f "$work/job.yaml"
[ "$(grep -c 'Training job created' "$work/out")" -eq 1 ] && pass || fail "not one job"
[ "$(requests | wc -l)" -eq 3 ] && pass || fail "not three requests"
[ "$(requests | "$python" -c 'import json, sys; print(len({json.loads(line)["key"] for line in sys.stdin}))')" -eq 1 ] \
  && pass || fail "another key"

# wait.
ok wait $completed; says "Training job completed: $completed"
bad 5 "" wait $odd; says "Training job failed: $odd"
bad 6 "not completed after 1s: $bert" wait $bert --timeout 1s
bad 6 "not completed after 5s: $bert" wait $completed $bert --timeout 5s
ok wait --for running $mnist
ok wait --for running $completed
ok wait --for ended $odd $completed
ok wait --for failed $odd
bad 1 "" wait --for failed $completed
bad 3 "there is no job \"nope\"" wait nope
bad 3 "there is no job \"nope\"" wait $completed nope
bad 2 "--for" wait $bert --for sunrise
bad 2 "is not a duration" wait $bert --timeout soon
streams() { [ "$(curl -sf -H "Authorization: Bearer secret-token" "$(cat "$VODA_HOME/server")/__streams")" = "$1" ]; }
# after ARGS...: starts voda in the background and waits until it follows events.
after() {
  until_true streams 0
  timeout 120 "$voda" "$@" > "$work/out" 2> "$work/err" &
  follower=$!
  until_true streams 1 || fail "voda $*: does not follow events"
}
# ended CODE: waits for what runs in the background.
ended() { wait "$follower"; code=$?; [ "$code" -eq "$1" ] && pass || fail "exit code $code, not $1"; }
after wait $bert
tell "__job/$bert" '{"fields": {"status": "Canceled"}, "event": "job.canceled"}'
ended 7; says "Training job canceled: $bert"
tell "__job_quietly/$bert" '{"status": "Waiting"}'
after wait $bert --timeout 100s  # the event is lost together with the connection
tell "__job_quietly/$bert" '{"status": "Completed"}'
tell __cut
ended 0
tell "__job_quietly/$bert" '{"status": "Waiting", "workers": 0}'
after wait $bert
tell "__job_quietly/$bert" '{"status": "Completed"}'
tell __lagged
ended 0
tell "__job_quietly/$bert" '{"status": "Waiting", "workers": 0}'

# get jobs -w.
lines() { [ "$(wc -l < "$work/out")" -ge "$1" ]; }
after get jobs -w
until_true lines 6 || fail "no table at first"
tell "__job/$bert" '{"fields": {"status": "Running", "workers": 2}, "event": "job.started"}'
until_true lines 7 || fail "no row for a change"
tell "__job/$bert" '{"fields": {"running_seconds": 5}, "event": "job.progress"}'  # nothing that the table shows changed
tell "__job/$bert" '{"fields": {"workers": 3}, "event": "job.resized"}'
until_true lines 8 || fail "no row for a resize"
tell "__job_quietly/$bert" '{"workers": 4}'
tell __lagged
until_true lines 9 || fail "no row after lag"
tell "__job_quietly/$bert" '{"workers": 1}'
tell __cut
until_true lines 10 || fail "no row after a lost connection"
kill "$follower" 2> /dev/null; wait "$follower" 2> /dev/null
tail -n +7 "$work/out" | awk '{print $1, $2, $3}' > "$work/rows"
if diff - "$work/rows" << ROWS > "$work/diff"; then pass; else fail "watched rows"; cat "$work/diff"; fi
$bert Running 2
$bert Running 3
$bert Running 4
$bert Running 1
ROWS
until_true streams 0
after get jobs $bert -w -o json
until_true lines 1
tell "__job/$mnist" '{"fields": {"workers": 4}, "event": "job.resized"}'  # another job
tell "__job/$bert" '{"fields": {"status": "Completed"}, "event": "job.completed"}'
until_true lines 2
kill "$follower" 2> /dev/null; wait "$follower" 2> /dev/null
if "$python" -c 'import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert [row["status"] for row in rows] == ["Running", "Completed"], rows' "$work/out"; then pass; else fail "watched JSON"; fi
bad 3 "there is no job" get jobs -w nope

# Wrong input and refusals.
bad 2 "--output: \"xml\" is not one of wide|json|yaml|name" get jobs -o xml
bad 2 "--status \"Going\" is unknown; known are Submitted" get jobs --status Going
bad 2 "unknown \"Nope\"; known are FIFO" set algorithm Nope
bad 2 "--option \"x\" is not KEY=VALUE" set algorithm FIFO --option x
bad 2 "is not a duration" set ratelimit fast
bad 2 "nothing to change" set size $bert
bad 2 "--min: Value 0 not in range" set size $bert --min 0
bad 2 "--max: Value 0 not in range 1 to 65536" set size $bert --max 0
bad 2 "--data: is empty" get jobs --data ""
bad 2 "--data: is empty" up --data ""
bad 2 "--data: is empty" store rebuild --data ""
bad 2 "--workdir: is empty" up --workdir ""
bad 2 "name is required" explain
bad 2 "" get
bad 2 "" get nothing
bad 1 "has ended already" delete $odd
ok delete --erase $odd
grep -qF "Training job erased: $odd" "$work/out" && pass || fail "erase does not say so"
bad 2 "" hold --erase $odd
bad 1 "there is a node \"a\" already" add node a --gpus 1
bad 3 "there is no node \"x\"" drain x
bad 3 "there is no node \"x\"" describe node x
bad 3 "there is no job \"../x\"" explain ../x
bad 3 "there is no job \"nope\"" logs nope
bad 2 "not a terminal; use \`voda get jobs -w\` there" top
run get --help; says "algorithms"
run --help; says "Jobs:"

# The connection: where server and token come from.
url=$(cat "$VODA_HOME/server")
bad 4 "cannot reach http://127.0.0.1:1: connection refused; is \`voda up\` running? start it, or name the server with --server" \
  get jobs --server http://127.0.0.1:1
bad 4 "cannot reach http://127.0.0.1:1" create -f "$work/job.yaml" --server 127.0.0.1:1
bad 4 "cannot reach http://127.0.0.1:1" wait $bert --server 127.0.0.1:1
bad 4 "cannot reach http://127.0.0.1:1" logs $bert --server 127.0.0.1:1
bad 2 "\"x\" is not a port" get jobs --server http://127.0.0.1:x
echo wrong > "$work/wrong"
bad 4 "refused the token of --token-file" get jobs --token-file "$work/wrong"
VODA_TOKEN=wrong bad 4 "refused the token of VODA_TOKEN" get jobs
VODA_HOME=$work/none VODA_SERVER=$url bad 4 "wants a token and none was found" get jobs
VODA_HOME=$work/none VODA_SERVER=$url VODA_TOKEN_FILE=$work/data/token ok get jobs
VODA_HOME='' ok get jobs --data "$VODA_HOME"
mkdir -p "$HOME/.config/voda"
printf 'server = %s\ntoken-file = %s/token\n' "$url" "$VODA_HOME" > "$HOME/.config/voda/config"
VODA_HOME='' ok get jobs
echo 'servr = x' > "$HOME/.config/voda/config"
bad 2 ".config/voda/config:1: \"servr\" is not usable" get jobs
rm "$HOME/.config/voda/config"
VODA_TOKEN=t bad 2 "in the clear to http://192.0.2.1:55587; use https://, or say --insecure" get jobs --server http://192.0.2.1:55587

# A server that is not Voda.
tell __fault '{"garbage": true}'
bad 1 "is it a Voda server?" get jobs
tell __fault '{"garbage": false, "status": 502}'
bad 1 "HTTP status 502 without an explanation" get jobs
tell __fault '{"status": 0}'

# TLS.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 -subj /CN=localhost \
  -addext subjectAltName=IP:127.0.0.1 2> /dev/null
serve "$work/tls" "$work/cert.pem" "$work/key.pem"
bad 4 "give the certificate of its authority with --ca-file" get jobs --data "$work/tls"
ok get jobs --data "$work/tls" --ca-file "$work/cert.pem"
bad 4 "" get jobs --data "$work/tls" --ca-file "$work/cert.pem" --server "http://127.0.0.1:$(sed 's/.*://' "$work/tls/server")"

# Many jobs, in pages.
STANDIN_PAGE=700 serve "$work/many"
many() { VODA_HOME=$work/many "$@"; }
many tell __many/2500
many run get jobs -o name
[ "$(wc -l < "$work/out")" -eq 2505 ] && [ "$(sort -u "$work/out" | wc -l)" -eq 2505 ] && pass || fail "pages"
many run get jobs --limit 1 -o name; says "many-002499-20211015-040000"
"$voda" get jobs --data "$work/many" | head -1 > "$work/out" 2> "$work/err"; says "NAME"  # a reader that goes away
[ -s "$work/err" ] && fail "a closed pipe is not worth a message" || pass
if [ -w /dev/full ]; then
  "$voda" get jobs > /dev/full 2> "$work/err"
  [ $? -eq 1 ] && grep -q "cannot write to stdout" "$work/err" && pass || fail "a full disk"
fi

# Completion: the scripts are well-formed, and bash completes with them.
for shell in bash zsh fish; do
  ok completion $shell
  if command -v $shell > /dev/null; then
    cp "$work/out" "$work/completion.$shell"
    if $shell -n "$work/completion.$shell" 2> "$work/err"; then pass; else fail "completion $shell: syntax"; fi
  fi
done
bad 2 "" completion tcsh
completes() {  # words of the reply, words of the command line
  local want=$1
  shift
  # shellcheck disable=SC2016
  bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _voda; echo "${COMPREPLY[*]}"' \
    "$work/completion.bash" "$voda" "$@" > "$work/out" 2> "$work/err"
  if [ "$(cat "$work/out")" = "$want" ]; then pass; else fail "completion of '$*': $(cat "$work/out")"; fi
}
completes "jobs nodes algorithms rounds" get ""
completes "--status" get jobs --st
completes "wide json yaml name" get job -o ""
completes "$resnet" delete res
completes "a b" describe node ""
completes "FIFO Tiresias Price" set algorithm ""
completes "$work/job.yaml" create -f "$work/job"
completes "bash zsh fish" completion ""
completes "running completed failed canceled ended" wait --for ""

# doctor: every line has its form; a token that others can read is a failure.
run doctor
if [ "$(grep -cvE '^(ok|warn|fail) {1,4}[^:]+: .+' "$work/out")" -eq 0 ] && grep -q '^ok    server: http' "$work/out"; then pass; else
  fail "doctor"; cat "$work/out"; fi
chmod 644 "$VODA_HOME/token"
PATH=$work run doctor  # without programs
[ "$code" -eq 1 ] && grep -q '^fail  token file' "$work/out" && pass || fail "doctor and an open token file"
says "warn  torchrun: not on PATH"
chmod 600 "$VODA_HOME/token"
PATH=$work run doctor --server http://127.0.0.1:1
says "warn  server: http://127.0.0.1:1 (from --server)"

# top on a terminal of 80x24 that becomes larger; q gives the terminal back.
cat > "$work/terminal.py" << 'PYTHON'
import fcntl, os, pty, select, signal, struct, sys, termios, time

def size(fd, width, height):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

master, slave = pty.openpty()
size(master, 80, 24)
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.login_tty(slave) if hasattr(os, "login_tty") else (os.setsid(), fcntl.ioctl(slave, termios.TIOCSCTTY, 0), [os.dup2(slave, fd) for fd in (0, 1, 2)])
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""

def until(text):
    global seen
    deadline = time.time() + 60
    while text not in seen:
        assert time.time() < deadline, (text, seen)
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65536)

until(b"DECISIONS")
assert b"\x1b[?1049h" in seen and b"\x1b[24;1H" in seen and b"\x1b[25;1H" not in seen
size(master, 120, 40)
until(b"\x1b[40;1H")
os.write(master, b"?")
until(b"Ctrl-C")
os.write(master, b"xq")
until(b"\x1b[?1049l")
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert termios.tcgetattr(slave) == before
PYTHON
if "$python" "$work/terminal.py" "$voda" top 2> "$work/err"; then pass; else fail "top"; fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
