// Gets an https URL through the proxy that HTTPS_PROXY names, as agents for older Nodes do, and
// prints the body. Usage: node tunnelled.mjs URL
import http from "node:http";
import https from "node:https";
import tls from "node:tls";

const url = new URL(process.argv[2]);
const proxy = new URL(process.env.HTTPS_PROXY);
const connect = http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: url.host });
connect.on("connect", (_, socket) => {
  const createConnection = () => tls.connect({ socket, servername: url.hostname });
  https.get(url, { createConnection }, (response) => response.pipe(process.stdout));
});
connect.end();
