"""Sends files as WebSocket messages with the library named, and prints the SHA-256 of each echo.

Usage: websocket.py websockets|aiohttp, with the input of transfer.py

Through a proxy websockets opens a tunnel, and aiohttp asks for the whole URL.
"""

import asyncio
import hashlib
import json
import ssl
import sys

plan = json.load(sys.stdin)
proxy, url = plan["proxy"], plan["transfers"][0]["url"]
tls = ssl.create_default_context(cafile=plan["roots"]) if plan["roots"] else None


def messages():
    for transfer in plan["transfers"]:
        with open(transfer["file"], "rb") as file:
            yield file.read()


async def with_websockets():
    import websockets

    async with websockets.connect(url, proxy=proxy, ssl=tls, max_size=None) as socket:
        for message in messages():
            await socket.send(message)
            yield await socket.recv()


async def with_aiohttp():
    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url, proxy=proxy, ssl=tls or True, max_msg_size=0) as socket:
            for message in messages():
                await socket.send_bytes(message)
                yield await socket.receive_bytes()


async def main():
    echoes = {"websockets": with_websockets, "aiohttp": with_aiohttp}[sys.argv[1]]()
    found = [{"status": 101, "sha256": hashlib.sha256(echo).hexdigest()} async for echo in echoes]
    json.dump(found, sys.stdout)


asyncio.run(main())
