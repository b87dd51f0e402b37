# The host's side of the tests in a guest: a folder that the guest sees, a server, its switch, and a machine that goes with its
# drives. Sourced by `drives` and `machine` with INSIDE, the script that the guest runs; they add IMAGES and `guest`.

export GUEST_DIR=${GUEST_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/leyden-guest}
[ -e "$GUEST_DIR/root.img" ] || { echo "LEFT OUT: no guest in $GUEST_DIR: $H/guest.sh build makes one" >&2; exit 77; }
W=$(mktemp -d); server= thrower=
end() { for each in $thrower $server; do kill "$each" 2>/dev/null && wait "$each" 2>/dev/null || true; done; rm -rf "$W"; }
trap end EXIT
mkdir "$W/host"; cp "$H/$INSIDE" "$W/host/"
# Serves the images by NVMe with these options.
serve() {
  "$LEYDEN" serve "${IMAGES[@]}" --nvme "$@" --latency off --log-level warn 2> "$W/said" & server=$!
  for _ in $(seq 200); do grep -q 'control at' "$W/said" && return; sleep 0.1; done; cat "$W/said" >&2; exit 1
}
power() { for image in "${IMAGES[@]}"; do "$LEYDEN" "$1" "$image" > /dev/null 2>> "$W/said" || true; done; }
# The switch: a file in the guest's folder asks for it.
throw() { while sleep 0.1; do for what in cut restore; do [ -e "$W/host/$what" ] || continue; power $what; rm -f "$W/host/$what"; done; done; }
# Runs a guest with these arguments that makes promises, and kills it with its drives amid them; false if it ends without any.
goes() {
  local run; rm -f "$W/host/begun"; guest -p "$W/number" -t 300 "$@" > "$W/out" 2>&1 & run=$!
  for _ in $(seq 3000); do [ -e "$W/host/begun" ] && break; kill -0 $run 2> /dev/null || break; sleep 0.1; done
  [ -e "$W/host/begun" ] || { wait $run; code=$?; return 1; }
  sleep "$((RANDOM % 4 + 1)).$((RANDOM % 10))"
  power cut; kill -9 "$(cat "$W/number")"; wait $run || true; power restore; kept=$((kept + $(wc -l < "$W/host/promised")))
}
# Nothing is tested by rounds without promises.
enough() { [ "$kept" -gt "$1" ] || { echo "only $kept promises in $1 rounds: nothing was tested"; return 1; }; }
# The last words: those of the server that are not its first, and what came out.
finish() {
  [ -z "$thrower" ] || { kill $thrower; thrower=; }
  grep -v '^NVMe at\|^control at' "$W/said" | head -20 >&2 || true
  kill -0 "$server" || { echo "the server has ended" >&2; code=1; }
  [ "$code" != 0 ] || echo "all well"
  exit "$code"
}
code=0 kept=0
