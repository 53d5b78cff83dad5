"""Gets a URL within a client span, and exports the span as OTEL_EXPORTER_OTLP_ENDPOINT says, with
nothing but the standard library. The span begins some time before the request.

Usage: traced_get.py URL
"""

import json
import os
import secrets
import sys
import time
import urllib.request

BEFORE_SEND = 0.2


def main():
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    start = time.time_ns()
    time.sleep(BEFORE_SEND)
    before_send = (time.time_ns() - start) / 1e9
    headers = {"traceparent": f"00-{trace_id}-{span_id}-01"}
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers)) as response:
        response.read()
    end = time.time_ns()
    export(trace_id, span_id, start, end)
    print(json.dumps({"before_send": before_send, "total": (end - start) / 1e9}))


def export(trace_id, span_id, start, end):
    assert os.environ["OTEL_TRACES_EXPORTER"] == "otlp"
    assert os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
    span = {
        "traceId": trace_id,
        "spanId": span_id,
        "name": "GET",
        "kind": 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
    }
    service = {"key": "service.name", "value": {"stringValue": "traced-get"}}
    batch = {"resource": {"attributes": [service]}, "scopeSpans": [{"spans": [span]}]}
    request = urllib.request.Request(
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces",
        data=json.dumps({"resourceSpans": [batch]}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 200, response.status


if __name__ == "__main__":
    main()
