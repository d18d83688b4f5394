#!/bin/sh
# Checks that a word no longer occurs in any file of the scratch folder. The job is one JSON object on standard input:
#   "inputs": { "gone": "Item" }
# "outputs" holds the outputs of the edits before it.
set -eu
gone=$(sed -n 's/.*"gone":"\([A-Za-z]*\)".*/\1/p')
[ -n "$gone" ] || { echo "inputs.gone must be a word" >&2; exit 1; }
if grep -n "$gone" examples/scratch/*.ts >&2; then
    echo "$gone is still there" >&2
    exit 1
fi
files=$(ls examples/scratch/*.ts | wc -l)
printf '{"files_checked":%d,"left":0}\n' "$files"
