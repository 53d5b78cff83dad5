"""Gives and takes files, and echoes WebSocket messages, with aiohttp, until standard input ends.

Usage: aiohttp_server.py FOLDER [CERTIFICATE KEY]

The same as http_server.py, and /echo speaks WebSocket.
"""

import asyncio
import os
import ssl
import sys

from aiohttp import WSMsgType, web

folder, *identity = sys.argv[1:]
PIECE = 16_384


async def give(request):
    with open(os.path.join(folder, "files", request.match_info["name"]), "rb") as file:
        return web.Response(body=file.read())


async def give_in_chunks(request):
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    with open(os.path.join(folder, "files", request.match_info["name"]), "rb") as file:
        while piece := file.read(PIECE):
            await response.write(piece)
    return response


async def take(request):
    with open(os.path.join(folder, "up", request.match_info["name"]), "wb") as file:
        async for piece in request.content.iter_any():
            file.write(piece)
    return web.Response(status=201)


async def echo(request):
    socket = web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.BINARY:
            await socket.send_bytes(message.data)
        elif message.type == WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket


async def main():
    app = web.Application()
    app.add_routes(
        [
            web.get("/files/{name}", give),
            web.get("/chunked/{name}", give_in_chunks),
            web.put("/up/{name}", take),
            web.get("/echo", echo),
        ]
    )
    context = None
    if identity:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*identity)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
