"""The same as traced_get.py, with a look-up of the host's name and a connection of its own within the
span, and no proxy: of several addresses it goes on to the next after a quarter of a second (RFC 8305).

Usage: traced_connect.py URL
"""

import asyncio
import json
import secrets
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
from traced_get import export

DELAY = 0.25


async def main():
    url = urllib.parse.urlsplit(sys.argv[1])
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    start = time.time_ns()
    connecting = asyncio.open_connection(url.hostname, url.port, happy_eyeballs_delay=DELAY)
    reader, writer = await connecting
    before_send = (time.time_ns() - start) / 1e9
    writer.write(
        f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n"
        f"traceparent: 00-{trace_id}-{span_id}-01\r\n\r\n".encode()
    )
    # The connection stays open on the side of some servers.
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    await reader.readuntil(b"ok\n")
    end = time.time_ns()
    writer.close()
    export(trace_id, span_id, start, end)
    print(json.dumps({"before_send": before_send, "total": (end - start) / 1e9}))


asyncio.run(main())
