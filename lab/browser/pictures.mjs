// Takes the pictures of docs/images from the pages of a running collector.
//
// Usage: pictures.mjs FOLDER

import { join } from "node:path";
import { base, eventually, launch, open } from "./site.mjs";

const [folder] = process.argv.slice(2);
const EDGE = "/edge?client_service=libcurl-7.62.0&server_service=delay-server&route=&since=15m";

/** The exchange of the faulty libcurl that is nearest to the incident: 7.5 s and then half a second. */
const incident = async () => {
  const list = await (await fetch(`${base}/api/v1/exchanges?service=libcurl-7.62.0&flagged=true&limit=100`)).json();
  const distance = (one) => Math.abs(one.server_seconds - 7.5);
  const [nearest] = list.exchanges.sort((a, b) => distance(a) - distance(b));
  return `/exchanges/${nearest.trace_id}/${nearest.client_span_id}`;
};

const PICTURES = [
  { name: "overview", path: "/?since=15m", height: 900, dark: true },
  { name: "exchanges", path: "/exchanges?flagged=true", height: 760 },
  { name: "exchange", path: await incident(), height: 900, dark: true },
  { name: "edge", path: EDGE, height: 760, dark: true },
  { name: "clocks", path: "/clocks", height: 640 },
  { name: "health", path: "/health", height: 900 },
];

const browser = await launch();
for (const { name, path, height, dark } of PICTURES) {
  for (const colorScheme of dark ? ["light", "dark"] : ["light"]) {
    const { page, close } = await open(browser, { viewport: { width: 1280, height }, colorScheme });
    await page.goto(base + path);
    const figures = await page.locator("figure[data-chart]").count();
    await eventually("the charts", async () => (await page.locator("figure canvas").count()) === figures);
    const file = join(folder, `${name}${colorScheme === "dark" ? "-dark" : ""}.png`);
    await page.screenshot({ path: file });
    console.log(file);
    await close();
  }
}
await browser.close();
