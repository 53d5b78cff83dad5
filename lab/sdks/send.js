// Sends a client's span and, under it, a server's span, with a metric and a log beside them.
//
// The SDK is as it comes, and set up by the variables that OpenTelemetry defines for it. Prints the
// ids of the trace and of the client's span.
"use strict";

const { SpanKind, context, metrics, trace } = require("@opentelemetry/api");
const { logs } = require("@opentelemetry/api-logs");
const { NodeSDK } = require("@opentelemetry/sdk-node");

const sdk = new NodeSDK();
sdk.start();
const tracer = trace.getTracer("lab");
const client = tracer.startSpan("GET", { kind: SpanKind.CLIENT });
const under = trace.setSpan(context.active(), client);
const server = tracer.startSpan("GET /cart", { kind: SpanKind.SERVER }, under);
server.setAttribute("http.route", "/cart");
metrics.getMeter("lab").createCounter("carts").add(1);
logs.getLogger("lab").emit({ body: "a cart was asked for" });
server.end();
client.end();

sdk.shutdown().then(
  () => console.log(`${client.spanContext().traceId} ${client.spanContext().spanId}`),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
