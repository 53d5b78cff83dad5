// The same as transfer.py with what Node brings along, and undici where its fetch needs a proxy.
// Usage: node transfer.mjs http|fetch|tunnelled-fetch FOLDER
// undici is looked for in FOLDER/node_modules. By itself it opens tunnels for plain HTTP as well; it
// does so here as tunnelled-fetch only.
import { createHash } from "node:crypto";
import { createReadStream, openAsBlob, readFileSync, statSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const [library, folder] = process.argv.slice(2);
const plan = JSON.parse(await text(process.stdin));
const ca = plan.roots ? readFileSync(plan.roots) : undefined;
const proxy = plan.proxy ? new URL(plan.proxy) : undefined;
const agents = { "http:": new http.Agent({ keepAlive: true }), "https:": new https.Agent({ ca }) };

async function withHttp({ url, file, chunked }) {
  const target = new URL(url);
  const method = file ? "PUT" : "GET";
  const headers = file && !chunked ? { "Content-Length": statSync(file).size } : {};
  let options = { method, headers, agent: agents[target.protocol] };
  let module = target.protocol === "https:" ? https : http;
  let where = target;
  if (proxy && target.protocol === "http:") {
    where = proxy;
    options = { ...options, path: url, headers: { ...headers, Host: target.host } };
  } else if (proxy) {
    const socket = await tunnel(target);
    const agent = new https.Agent({ ca, socket });
    options = { ...options, agent, servername: target.hostname };
  }
  return new Promise((resolve, reject) => {
    const request = module.request(where, options, (response) => {
      const hash = createHash("sha256");
      response.on("data", (piece) => hash.update(piece));
      response.on("end", () => resolve({ status: response.statusCode, sha256: hash.digest("hex") }));
      response.on("error", reject);
    });
    request.on("error", reject);
    if (file) createReadStream(file).pipe(request);
    else request.end();
  });
}

function tunnel(target) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: proxy.hostname,
      port: proxy.port,
      method: "CONNECT",
      path: target.host,
      headers: { Host: target.host },
    });
    request.on("connect", (response, socket) =>
      response.statusCode === 200 ? resolve(socket) : reject(new Error(`${response.statusCode}`)),
    );
    request.on("error", reject);
    request.end();
  });
}

function fetcher() {
  if (!proxy) return fetch;
  const undici = createRequire(`${folder}/`)("undici");
  const way = { httpProxy: plan.proxy, httpsProxy: plan.proxy, noProxy: "" };
  const tunnels = library === "tunnelled-fetch" ? {} : { proxyTunnel: false };
  const dispatcher = new undici.EnvHttpProxyAgent({ ...way, ...tunnels, requestTls: { ca } });
  return (url, options) => undici.fetch(url, { ...options, dispatcher });
}

const fetchIt = fetcher();

async function withFetch({ url, file, chunked }) {
  const body = file && (chunked ? (await openAsBlob(file)).stream() : readFileSync(file));
  const method = file ? "PUT" : "GET";
  const response = await fetchIt(url, { method, body, duplex: "half" });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, sha256: createHash("sha256").update(bytes).digest("hex") };
}

const transfer = library === "http" ? withHttp : withFetch;
const found = [];
for (const one of plan.transfers) found.push(await transfer(one));
process.stdout.write(JSON.stringify(found));
process.exit();
