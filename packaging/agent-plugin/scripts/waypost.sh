#!/bin/sh
# Runs Waypost: the program on PATH, or else the package that npx fetches.
command -v waypost >/dev/null && exec waypost "$@"
exec npx -y waypost "$@"
