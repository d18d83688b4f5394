"""Writes a wheel that contains the binary: make_wheel.py BINARY VERSION PLATFORM-TAG README OUT-FOLDER MAN-FOLDER"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

binary, version, platform, readme, out, man = sys.argv[1:]
name = f"waypost-{version}"
metadata = f"""Metadata-Version: 2.1
Name: waypost
Version: {version}
Summary: Plans that agents write, people approve and machines run.
License: MIT OR Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{Path(readme).read_text(encoding="utf-8")}"""
wheel = f"""Wheel-Version: 1.0
Generator: waypost xtask
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""
files = [
    (f"{name}.data/scripts/waypost", Path(binary).read_bytes(), 0o755),
    (f"{name}.dist-info/METADATA", metadata.encode(), 0o644),
    (f"{name}.dist-info/WHEEL", wheel.encode(), 0o644),
]
# None if the binary is for another platform.
for page in sorted(Path(man).glob("*.1")):
    files.append((f"{name}.data/data/share/man/man1/{page.name}", page.read_bytes(), 0o644))
record = ""
for path, content, _ in files:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{path},sha256={digest},{len(content)}\n"
record += f"{name}.dist-info/RECORD,,\n"
files.append((f"{name}.dist-info/RECORD", record.encode(), 0o644))
target = Path(out) / f"{name}-py3-none-{platform}.whl"
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path, content, mode in files:
        # A fixed time, so that the same binary gives the same file.
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
print(target)
