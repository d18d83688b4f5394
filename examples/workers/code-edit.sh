#!/bin/sh
# Renames a word in one file of the scratch folder. The job is one JSON object on standard input:
#   "inputs": { "file": "alpha.ts", "rename": ["Item", "Entry"] }
# Standard output is the task's output; standard error is its log.
set -eu
job=$(cat)
field() { printf '%s' "$job" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
file=$(field file)
from=$(printf '%s' "$job" | sed -n 's/.*"rename":\["\([A-Za-z]*\)","[A-Za-z]*"\].*/\1/p')
to=$(printf '%s' "$job" | sed -n 's/.*"rename":\["[A-Za-z]*","\([A-Za-z]*\)"\].*/\1/p')

# The input is untrusted: refuse names that lead out of the folder.
case "$file" in
    '' | */* | .*) echo "no such file: '$file'" >&2; exit 1 ;;
esac
[ -n "$from" ] && [ -n "$to" ] || { echo "inputs.rename must be two words" >&2; exit 1; }

scratch=examples/scratch
mkdir -p "$scratch"
[ -f "$scratch/$file" ] || cp "examples/fixture/$file" "$scratch/$file"
found=$(grep -c "$from" "$scratch/$file" || true)
echo "waypost:progress renaming $from in $found lines of $file" >&2
sleep 0.4
sed "s/$from/$to/g" "$scratch/$file" > "$scratch/$file.new"
mv "$scratch/$file.new" "$scratch/$file"
printf '{"file":"%s","lines_changed":%s}\n' "$file" "$found"
