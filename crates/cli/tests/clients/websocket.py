"""Sends files as WebSocket messages with the library websockets, and prints the SHA-256 of each echo.

Usage: websocket.py, with the input of transfer.py
"""

import asyncio
import hashlib
import json
import ssl
import sys

import websockets

plan = json.load(sys.stdin)


async def main():
    found = []
    tls = ssl.create_default_context(cafile=plan["roots"]) if plan["roots"] else None
    url = plan["transfers"][0]["url"]
    connecting = websockets.connect(url, proxy=plan["proxy"], ssl=tls, max_size=None)
    async with connecting as socket:
        for transfer in plan["transfers"]:
            with open(transfer["file"], "rb") as file:
                await socket.send(file.read())
            echo = await socket.recv()
            found.append({"status": 101, "sha256": hashlib.sha256(echo).hexdigest()})
    json.dump(found, sys.stdout)


asyncio.run(main())
