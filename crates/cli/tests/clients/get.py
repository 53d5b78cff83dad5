"""Gets a URL with the library named, as its users do, and prints the body.

Usage: get.py urllib|requests|httpx|aiohttp URL
"""

import asyncio
import sys


def get_urllib(url):
    import urllib.request

    with urllib.request.urlopen(url) as response:
        return response.read().decode()


def get_requests(url):
    import requests

    return requests.get(url).text


def get_httpx(url):
    import httpx

    return httpx.get(url).text


def get_aiohttp(url):
    import aiohttp

    async def get():
        async with aiohttp.ClientSession(trust_env=True) as session:
            async with session.get(url) as response:
                return await response.text()

    return asyncio.run(get())


library, url = sys.argv[1:]
print({f.__name__: f for f in (get_urllib, get_requests, get_httpx, get_aiohttp)}["get_" + library](url), end="")
