"""Sends files as gRPC messages with grpcio, each in a call of its own and then all in one stream, and
prints the SHA-256 of each echo. A call whose trailer says otherwise fails.

Usage: grpc_echo.py, with the input of transfer.py; a URL of https is spoken to under TLS
"""

import hashlib
import json
import os
import sys

for name in ("no_grpc_proxy", "no_proxy"):
    os.environ.pop(name, None)

import grpc

LARGEST = [(f"grpc.max_{way}_message_length", 16 << 20) for way in ("receive", "send")]

plan = json.load(sys.stdin)
messages = [open(transfer["file"], "rb").read() for transfer in plan["transfers"]]
scheme, address = plan["transfers"][0]["url"].split("://")
way = ("grpc.http_proxy", plan["proxy"]) if plan["proxy"] else ("grpc.enable_http_proxy", 0)
options = [*LARGEST, way]


def channel_to(address):
    if scheme == "http":
        return grpc.insecure_channel(address, options=options)
    with open(plan["roots"], "rb") as file:
        credentials = grpc.ssl_channel_credentials(root_certificates=file.read())
    return grpc.secure_channel(address, credentials, options=options)


def found(echo):
    return {"status": 200, "sha256": hashlib.sha256(echo).hexdigest()}


with channel_to(address) as channel:
    one = channel.unary_unary("/echo/One")
    calls = [one.with_call(message, timeout=30) for message in messages]
    many = channel.stream_stream("/echo/Many")
    echoes = list(many(iter(messages), timeout=30))

for (echo, call), again in zip(calls, echoes, strict=True):
    trailers = dict(call.trailing_metadata())
    assert trailers["sha256"] == hashlib.sha256(echo).hexdigest(), trailers
    assert again == echo, "the stream and the call differ"
json.dump([found(echo) for echo, _ in calls], sys.stdout)
