#!/bin/sh
# One step of examples/release.json, in examples/scratch/release. The job is one JSON object on standard input, with
#   "inputs": { "do": "compile", "part": "p07", "from": ["p01", "p04"] }
# Every step fails when what it builds upon is not there, and may be repeated.
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
        [ "$(head -n 1 "build/$part.o")" = "$part $(cat VERSION)" ] || { echo "$part is of another version" >&2; exit 1; }
        [ "$(wc -l < "build/$part.o")" -eq "$(($(echo "$from" | wc -w) + 1))" ]
        printf '{"part":"%s","passed":true}\n' "$part" ;;
    document) printf '# %s\n\nPart %s of release %s.\n' "$part" "$part" "$(cat VERSION)" | put "build/$part.md" ;;
    package) cat "build/$part.o" "build/$part.md" | put "dist/$part.pkg" ;;
    sign)
        # Two signatures at the same time would spoil the key: the lock of the plan keeps them apart.
        mkdir signing || { echo "somebody else is signing" >&2; exit 1; }
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
        # The check of publish: everything that is published is signed, and as it was when it was signed.
        [ -f PUBLISHED ] || { echo "nothing was published" >&2; exit 1; }
        for package in dist/*.pkg; do
            [ "$(sums "$package")" = "$(cat "${package%.pkg}.sig")" ] || { echo "$package was changed" >&2; exit 1; }
        done ;;
    *) echo "no step is called $step" >&2; exit 1 ;;
esac
