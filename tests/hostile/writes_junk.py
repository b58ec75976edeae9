import contextlib
import os

for descriptor in range(3, 30):
    for junk in (
        b"\n{\n",
        b"\n[1]\n",
        b'\n{"id":1}\n',
        b"\n\xff\xfe\n",
        b'\n{"id":1,"error":"input"}\n',
        b"no line",
    ):
        with contextlib.suppress(OSError):
            os.write(descriptor, junk)
