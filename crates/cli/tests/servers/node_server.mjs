// Gives and takes files with Node's http and https modules, until standard input ends.
// Usage: node node_server.mjs FOLDER [CERTIFICATE KEY]
// The same as http_server.py.
import { createReadStream, createWriteStream, readFileSync, statSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";

const [folder, certificate, key] = process.argv.slice(2);

async function answer(request, response) {
  const [, kind] = request.url.split("/");
  const name = basename(request.url);
  if (request.method === "PUT") {
    await pipeline(request, createWriteStream(join(folder, "up", name)));
    response.writeHead(201, { "Content-Length": 0 }).end();
    return;
  }
  const file = join(folder, "files", name);
  // Without a length Node sends chunks.
  const headers = kind === "files" ? { "Content-Length": statSync(file).size } : {};
  response.writeHead(200, headers);
  await pipeline(createReadStream(file), response);
}

// A client that has its bytes may leave before Node has ended the response; one that lacks them
// says so itself.
const listener = (request, response) => answer(request, response).catch(() => {});
const server = certificate
  ? https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, listener)
  : http.createServer(listener);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
