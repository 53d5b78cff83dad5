// Gets a URL with the module named, and prints the body.
// Usage: node get.mjs http|fetch URL
import http from "node:http";
import https from "node:https";

const [module, url] = process.argv.slice(2);
if (module === "fetch") {
  process.stdout.write(await (await fetch(url)).text());
} else {
  (url.startsWith("https:") ? https : http).get(url, (response) => response.pipe(process.stdout));
}
