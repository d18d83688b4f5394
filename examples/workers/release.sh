#!/bin/sh
# Runs one step of examples/release.json in examples/scratch/release. The job is one JSON object on standard input:
#   "inputs": { "do": "compile", "part": "p07", "from": ["p01", "p04"] }
# A step fails if its prerequisites are missing. Every step can be repeated.
set -eu
job=$(cat)
field() { printf '%s' "$job" | sed -n "s/.*\"$1\":\"\([a-z0-9-]*\)\".*/\1/p"; }
step=$(field do)
part=$(field part)
from=$(printf '%s' "$job" | sed -n 's/.*"from":\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr ',' ' ')
[ -n "$step" ] || { echo "inputs.do is missing" >&2; exit 1; }

mkdir -p examples/scratch/release/build examples/scratch/release/dist
cd examples/scratch/release
put() { cat > "$1.$WAYPOST_TASK.new"; mv "$1.$WAYPOST_TASK.new" "$1"; }
sums() { for file in "$@"; do printf '%s ' "$file"; cksum < "$file"; done; }

case "$step" in
    version) echo "2.0.0" | put VERSION ;;
    compile)
        { echo "$part $(cat VERSION)"; for other in $from; do sums "build/$other.o"; done; } | put "build/$part.o" ;;
    test)
        [ "$(head -n 1 "build/$part.o")" = "$part $(cat VERSION)" ] || { echo "$part has another version" >&2; exit 1; }
        [ "$(wc -l < "build/$part.o")" -eq "$(($(echo "$from" | wc -w) + 1))" ]
        printf '{"part":"%s","passed":true}\n' "$part" ;;
    document) printf '# %s\n\nPart %s of release %s.\n' "$part" "$part" "$(cat VERSION)" | put "build/$part.md" ;;
    package) cat "build/$part.o" "build/$part.md" | put "dist/$part.pkg" ;;
    sign)
        # Concurrent signatures would corrupt the key; the plan's lock prevents them.
        mkdir signing || { echo "another task is signing" >&2; exit 1; }
        sums "dist/$part.pkg" | put "dist/$part.sig"
        rmdir signing ;;
    bundle) cat dist/*.pkg | put "dist/$part.bundle" ;;
    manifest) sums dist/*.pkg | put MANIFEST; printf '{"packages":%d}\n' "$(wc -l < MANIFEST)" ;;
    announce) printf 'Release %s has %d packages.\n' "$(cat VERSION)" "$(wc -l < MANIFEST)" | put ANNOUNCEMENT ;;
    tag) printf 'v%s\n' "$(cat VERSION)" | put TAG ;;
    publish)
        [ "$WAYPOST_ATTEMPT" -gt 1 ] || { echo "the mirror is busy" >&2; exit 75; }
        cat MANIFEST ANNOUNCEMENT TAG | put PUBLISHED ;;
    verify)
        # The check of publish: every published package is signed and unchanged since.
        [ -f PUBLISHED ] || { echo "nothing was published" >&2; exit 1; }
        for package in dist/*.pkg; do
            [ "$(sums "$package")" = "$(cat "${package%.pkg}.sig")" ] || { echo "$package was changed" >&2; exit 1; }
        done ;;
    *) echo "unknown step: $step" >&2; exit 1 ;;
esac
