"""Makes the transfers that standard input lists as JSON, with the library named, one after the other
in one session, and prints what came of each.

Usage: transfer.py requests|httpx|aiohttp

Input: {"proxy": URL or null, "roots": FILE or null, "transfers": [{"url": URL, "file": FILE to put or
null, "chunked": BOOL}]}. Output: [{"status": NUMBER, "sha256": HEX of the body}].
"""

import asyncio
import hashlib
import json
import sys

plan = json.load(sys.stdin)
proxy, roots = plan["proxy"], plan["roots"]


def pieces(path):
    with open(path, "rb") as file:
        while piece := file.read(16_384):
            yield piece


async def pieces_async(path):
    for piece in pieces(path):
        yield piece


def body_of(transfer, in_pieces):
    if transfer["file"] is None:
        return None
    if transfer["chunked"]:
        return in_pieces(transfer["file"])
    with open(transfer["file"], "rb") as file:
        return file.read()


def result(status, body):
    return {"status": status, "sha256": hashlib.sha256(body).hexdigest()}


def with_requests():
    import requests

    session = requests.Session()
    session.trust_env = False
    session.proxies = {"http": proxy, "https": proxy} if proxy else {}
    session.verify = roots or True
    for transfer in plan["transfers"]:
        method = "PUT" if transfer["file"] else "GET"
        response = session.request(method, transfer["url"], data=body_of(transfer, pieces))
        yield result(response.status_code, response.content)


def with_httpx():
    import ssl

    import httpx

    verify = ssl.create_default_context(cafile=roots) if roots else True
    with httpx.Client(proxy=proxy, verify=verify, trust_env=False, timeout=30) as client:
        for transfer in plan["transfers"]:
            method = "PUT" if transfer["file"] else "GET"
            response = client.request(method, transfer["url"], content=body_of(transfer, pieces))
            yield result(response.status_code, response.content)


def with_aiohttp():
    import ssl

    import aiohttp

    async def transfer_all():
        tls = ssl.create_default_context(cafile=roots) if roots else True
        found = []
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
            for transfer in plan["transfers"]:
                method = "PUT" if transfer["file"] else "GET"
                body = body_of(transfer, pieces_async)
                request = session.request(method, transfer["url"], data=body, proxy=proxy)
                async with request as response:
                    found.append(result(response.status, await response.read()))
        return found

    return asyncio.run(transfer_all())


libraries = {"requests": with_requests, "httpx": with_httpx, "aiohttp": with_aiohttp}
json.dump(list(libraries[sys.argv[1]]()), sys.stdout)
