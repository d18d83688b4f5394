# What a task's program does: it notes its start, takes its locks in a way that ends with the process, works, and notes
# its end. The engine knows nothing of these notes; each is one line, written at once to the end of the file.
# Arguments: the file for notes, the folder of locks, a pipe that stays empty. The job is one line on standard input.
set -u
notes=$1 folder=$2
exec {empty}<>"$3"
IFS= read -r job || [ -n "${job-}" ] || exit 1
# Whoever started it died before it could say what to do.
[[ $job =~ \"locks\":\"([^\"]*)\",\"millis\":([0-9]+),\"mode\":\"([a-z_]+)\" ]] || exit 1
locks=${BASH_REMATCH[1]} millis=${BASH_REMATCH[2]} mode=${BASH_REMATCH[3]}

note() {
    local at=${EPOCHREALTIME/./}
    printf '{"what":"%s","plan":"%s","task":"%s","attempt":%s,"worker":"%s","pid":%s,"at":%s%s}\n' \
        "$1" "$WAYPOST_PLAN" "$WAYPOST_TASK" "$WAYPOST_ATTEMPT" "$WAYPOST_WORKER" "$$" "$at" "${2-}" >>"$notes"
}

# Without a program of its own for each wait.
rest() { read -rt "$1" -u "$empty" || true; }

note start
for lock in $locks; do
    exec {file}>>"$folder/${lock#*:}"
    flock -n "-${lock%%:*}" "$file"
    # Only this exit code says that somebody else has it: when a group is killed, `flock` may go before its shell.
    [ $? -ne 1 ] || note clash ",\"key\":\"${lock#*:}\""
done
if [ "$mode" = slow ]; then
    echo "waypost:progress at it" >&2
    # In steps: while it is stopped, it does not come further.
    for _ in {1..25}; do rest 0.1; done
fi
[ "$mode" != hang_once ] || [ "$WAYPOST_ATTEMPT" -gt 1 ] || rest 60
printf -v millis %03d "$millis"
rest "0.$millis"
case $mode-$WAYPOST_ATTEMPT in
    fail_once-1 | doomed-*) note end ',"result":"failed"'; echo "it was to fail" >&2; exit 1 ;;
    again_once-1) note end ',"result":"again"'; exit 75 ;;
esac
note end ',"result":"done"'
echo "{\"attempt\":$WAYPOST_ATTEMPT,\"pid\":$$}"
