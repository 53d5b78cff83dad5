"""Sends one request through the proxy that http_proxy names, late at every stage, and prints as
JSON how late it really was.

Usage: planted_stages.py URL [--direct]
"""

import json
import os
import select
import socket
import sys
import time
import urllib.parse

BEFORE_SEND = 0.15
WITHIN_REQUEST = 0.2
BEFORE_READ = 0.4


def main():
    url = urllib.parse.urlsplit(sys.argv[1])
    direct = "--direct" in sys.argv
    proxy = url if direct else urllib.parse.urlsplit(os.environ["http_proxy"])
    target = f"{url.path}?{url.query}" if direct else sys.argv[1]
    head = f"POST {target} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: 2\r\n\r\n"

    peer = socket.create_connection((proxy.hostname, proxy.port))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected = time.monotonic()
    time.sleep(BEFORE_SEND)
    before_send = time.monotonic() - connected
    peer.sendall(head.encode() + b"a")
    begun = time.monotonic()
    time.sleep(WITHIN_REQUEST)
    within_request = time.monotonic() - begun
    peer.sendall(b"b")

    poller = select.poll()
    poller.register(peer, select.POLLIN)
    poller.poll()
    # The rest of the response is on its way: its last byte must be there before the nap begins.
    while b"\n" not in peer.recv(65536, socket.MSG_PEEK).partition(b"\r\n\r\n")[2]:
        time.sleep(0.001)
    arrived = time.monotonic()
    time.sleep(BEFORE_READ)
    unread = time.monotonic() - arrived
    peer.recv(65536)
    print(json.dumps({"before_send": before_send, "request": within_request, "unread": unread}))


main()
