#!/bin/sh
# Installs Waypost for this user:
#   curl -fsSL https://github.com/waypost/waypost/releases/latest/download/install.sh | sh
# WAYPOST_VERSION=0.1.0 chooses a version, WAYPOST_INSTALL_DIR a folder, WAYPOST_DOWNLOADS a folder or URL with the archives.
set -eu

fail() {
    echo "error: $1" >&2
    exit 1
}

case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) target=x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    *) fail "there is no binary for $(uname -s) on $(uname -m); build it with: cargo install waypost" ;;
esac
target="${WAYPOST_TARGET:-$target}"
releases=https://github.com/waypost/waypost/releases
if [ -n "${WAYPOST_DOWNLOADS:-}" ]; then
    from="$WAYPOST_DOWNLOADS"
    if [ -d "$from" ]; then from="$(cd "$from" && pwd)"; fi
elif [ -n "${WAYPOST_VERSION:-}" ]; then
    from="$releases/download/v$WAYPOST_VERSION"
else
    from="$releases/latest/download"
fi
folder="${WAYPOST_INSTALL_DIR:-$HOME/.local/bin}"
archive="waypost-$target.tar.xz"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

get() {
    case "$from" in
        /*) cp "$from/$1" "$work/$1" ;;
        *)
            if command -v curl >/dev/null; then
                curl -fsSL "$from/$1" -o "$work/$1"
            elif command -v wget >/dev/null; then
                wget -q "$from/$1" -O "$work/$1"
            else
                fail "neither curl nor wget is installed"
            fi
            ;;
    esac || fail "$from/$1 cannot be read"
}

get "$archive"
get SHA256SUMS
if command -v sha256sum >/dev/null; then
    sum="sha256sum"
else
    sum="shasum -a 256"
fi
(cd "$work" && grep " $archive\$" SHA256SUMS | $sum -c - >/dev/null) || fail "the checksum of $archive is wrong; nothing was installed"
tar -xJf "$work/$archive" -C "$work" || fail "$archive cannot be unpacked; is xz installed?"
mkdir -p "$folder"
# A running binary cannot be overwritten, but it can be replaced.
mv "$work/waypost-$target/waypost" "$folder/.waypost-new"
mv "$folder/.waypost-new" "$folder/waypost"
echo "installed $("$folder/waypost" --version) in $folder"
case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "add it to your PATH: export PATH=\"$folder:\$PATH\"" ;;
esac
