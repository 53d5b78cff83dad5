"""Sends files as gRPC messages with grpcio, each in a call of its own and then all in one stream, and
prints the SHA-256 of each echo. A call whose trailer says otherwise fails.

Usage: grpc_echo.py, with the input of transfer.py
"""

import hashlib
import json
import sys

import grpc

LARGEST = [(f"grpc.max_{way}_message_length", 16 << 20) for way in ("receive", "send")]

plan = json.load(sys.stdin)
messages = [open(transfer["file"], "rb").read() for transfer in plan["transfers"]]
address = plan["transfers"][0]["url"].removeprefix("http://")
options = [*LARGEST, ("grpc.enable_http_proxy", 0)]


def found(echo):
    return {"status": 200, "sha256": hashlib.sha256(echo).hexdigest()}


with grpc.insecure_channel(address, options=options) as channel:
    one = channel.unary_unary("/echo/One")
    calls = [one.with_call(message, timeout=30) for message in messages]
    many = channel.stream_stream("/echo/Many")
    echoes = list(many(iter(messages), timeout=30))

for (echo, call), again in zip(calls, echoes, strict=True):
    trailers = dict(call.trailing_metadata())
    assert trailers["sha256"] == hashlib.sha256(echo).hexdigest(), trailers
    assert again == echo, "the stream and the call differ"
json.dump([found(echo) for echo, _ in calls], sys.stdout)
