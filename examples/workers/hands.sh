#!/bin/sh
# Follows a task's description, if it is one of a few known sentences: for plans in formats whose tasks have only
# a description (clido, jaato, frctl). The job is one JSON object on standard input; its "outputs" holds the counts of
# earlier tasks. All files are in examples/scratch/PLAN.
set -eu
job=$(cat)
say=$(printf '%s' "$job" | sed -n 's/.*"description":"\([^"]*\)".*/\1/p')
[ -n "$say" ] || { echo "no job on standard input" >&2; exit 1; }

# The description is untrusted: refuse names that lead out of the folder.
name() {
    case "$1" in '' | */* | .* | *[!A-Za-z0-9._-]*) echo "no such file: '$1'" >&2; exit 1 ;; esac
    printf '%s' "$1"
}
word() {
    case "$1" in '' | *[!A-Za-z]*) echo "no such word: '$1'" >&2; exit 1 ;; esac
    printf '%s' "$1"
}
counted() { printf '%s' "$job" | tr ',{}' '\n\n\n' | sed -n 's/^"lines":\([0-9][0-9]*\)$/\1/p'; }
sum() { counted | { total=0; while read -r lines; do total=$((total + lines)); done; echo "$total"; }; }

scratch=examples/scratch/$(name "$WAYPOST_PLAN")
mkdir -p "$scratch"
set -f
# shellcheck disable=SC2086 # The words of the sentence, one by one.
set -- $say
case "$say" in
    "Fetch "*)
        file=$(name "${2-}")
        cp "examples/fixture/$file" "$scratch/$file.new"
        mv "$scratch/$file.new" "$scratch/$file"
        printf '{"file":"%s"}\n' "$file" ;;
    "Rename "*" to "*" in "*)
        from=$(word "$2")
        to=$(word "$4")
        file=$(name "${6-}")
        found=$(grep -c "$from" "$scratch/$file" || true)
        sed "s/$from/$to/g" "$scratch/$file" > "$scratch/$file.new"
        mv "$scratch/$file.new" "$scratch/$file"
        printf '{"file":"%s","lines_changed":%d}\n' "$file" "$found" ;;
    "Check that "*" is gone from "*)
        gone=$(word "$3")
        file=$(name "${7-}")
        [ -f "$scratch/$file" ] || { echo "$file is not there" >&2; exit 1; }
        if grep -n "$gone" "$scratch/$file" >&2; then exit 1; fi
        printf '{"file":"%s","left":0}\n' "$file" ;;
    "Count the lines of "*)
        file=$(name "${5-}")
        printf '{"file":"%s","lines":%d}\n' "$file" "$(wc -l < "$scratch/$file")" ;;
    "Add up what was counted")
        printf '{"lines":%d}\n' "$(sum)" ;;
    "Write the sum to "*)
        file=$(name "${5-}")
        printf '%d lines\n' "$(sum)" > "$scratch/$file.new"
        mv "$scratch/$file.new" "$scratch/$file"
        printf '{"file":"%s"}\n' "$file" ;;
    *) echo "unknown instruction: $say" >&2; exit 1 ;;
esac
