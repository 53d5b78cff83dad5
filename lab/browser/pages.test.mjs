// Clicks through every page as a person would, with mouse, keyboard and a reader's eyes.
//
// lab/browser.sh has a demo, a faulty and a repaired libcurl behind it, so what has to be on the
// pages is known: of 33 calls of each, 16 of the faulty one lag, and none of the other. On a busy
// machine a lag may fall short of being flagged, or a healthy client come late: where that could
// change a number, the pages are held to what the API says.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { base, column, eventually, isDrawn, launch, open } from "./site.mjs";

const FAULTY = "/edge?client_service=libcurl-7.62.0&server_service=delay-server&route=&since=1h";
const REPAIRED = "/edge?client_service=libcurl-7.64.1&server_service=delay-server&route=&since=1h";
const PAGES = ["/", "/exchanges", "/exchanges?flagged=true", FAULTY, REPAIRED, "/clocks", "/health"];

const require = createRequire(import.meta.url);
let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** A test on a page of its own, on which nothing may go wrong. */
const onPage = (what, run, options) =>
  test(what, async () => {
    const { page, wrong, close } = await open(browser, options);
    try {
      await run(page, wrong);
      assert.deepEqual(wrong, []);
    } finally {
      await close();
    }
  });

const json = async (path) => (await fetch(base + path)).json();

/** All exchanges, as the API has them. */
const exchanges = async (query = "") => (await json(`/api/v1/exchanges?limit=1000${query}`)).exchanges;

/** The page of the exchange of the faulty libcurl that lags most. */
const laggard = async () => {
  const flagged = await exchanges("&service=libcurl-7.62.0&flagged=true");
  const [most] = flagged.sort((a, b) => b.gap_seconds - a.gap_seconds);
  return { path: `/exchanges/${most.trace_id}/${most.client_span_id}`, verdict: most };
};

onPage("the overview says what is flagged, by edge, cause and time", async (page) => {
  await page.goto(`${base}/`);
  const flagged = await exchanges("&flagged=true");
  const edges = (await json("/api/v1/edges")).edges;
  const on = edges.filter((edge) => edge.flagged > 0).length;
  const headline = `${flagged.length} of 86 exchanges flagged, on ${on} of 4 edges`;
  assert.equal(await page.locator(".headline").innerText(), headline);
  const names = await column(page, ".edges", 0);
  const counts = await column(page, ".edges", 1);
  assert.deepEqual(counts, edges.map((edge) => String(edge.flagged)));
  assert.match(names[0], /libcurl-7\.62\.0.*delay-server/s);
  assert.match(names[1], /demo-blind-sleep.*demo-origin/s);
  assert.ok(await isDrawn(page, "over-time"));
  const bars = await page.locator("#over-time tbody tr").evaluateAll((rows) => rows.map((row) => row.dataset.values));
  const drawn = bars.flatMap((bar) => bar.split(" ")).reduce((sum, value) => sum + Number(value), 0);
  assert.equal(drawn, flagged.length);

  await page.getByRole("link", { name: "client_blind_sleep" }).first().click();
  await page.waitForURL("**/exchanges?cause=client_blind_sleep");
  const found = await exchanges("&cause=client_blind_sleep");
  assert.equal(await page.locator(".exchanges tbody tr").count(), found.length);
});

onPage("the list is narrowed by its form", async (page) => {
  await page.goto(`${base}/exchanges`);
  assert.match(await page.locator(".count").innerText(), /^50 on this page/);
  await page.getByRole("link", { name: /Older/ }).click();
  await page.waitForURL("**cursor=**");
  assert.equal(await page.locator(".exchanges tbody tr").count(), 36);
  await page.getByLabel("Flagged only").check();
  await page.getByLabel("Service").fill("libcurl-7.62.0");
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL("**service=libcurl-7.62.0**");
  const flagged = (await exchanges("&service=libcurl-7.62.0&flagged=true")).length;
  assert.ok(flagged > 0);
  assert.equal(await page.locator(".exchanges tbody tr.flagged").count(), flagged);
  assert.equal(await page.locator(".exchanges tbody tr").count(), flagged);
});

onPage("an exchange shows where the time went, and why", async (page) => {
  const { path, verdict } = await laggard();
  await page.goto(`${base}/exchanges?flagged=true&service=libcurl-7.62.0`);
  await page.locator(`a[href="${path}"]`).click();
  await page.waitForURL(`**${path}`);
  const headline = await page.locator(".headline").innerText();
  assert.match(headline, /after the response had arrived and before the client read it; cause: client_blind_sleep/);
  const gap = page.locator("svg.waterfall").first().locator(".gap-label");
  assert.match(await gap.innerHTML(), /Client, response unread: [01]\.\d{3}/);
  // The rows add up to the nanosecond, in whole numbers.
  const nanoseconds = (text) => BigInt(text.replace("\u2212", "-").replace(/[^-0-9]/g, ""));
  const table = page.locator("table.ledger", { hasText: "The client's span" });
  const counted = await table.locator("tbody .counted").allInnerTexts();
  const total = await table.locator("tfoot .counted").innerText();
  assert.equal(counted.reduce((sum, text) => sum + nanoseconds(text), 0n), nanoseconds(total));
  assert.match(await page.locator(".finding").innerText(), /without any descriptor/);
  const href = await page.getByRole("link", { name: "This verdict as JSON" }).getAttribute("href");
  assert.equal((await json(href)).client_span_id, verdict.client_span_id);
  const kept = await page.getByRole("link", { name: "as a case" }).getAttribute("href");
  assert.equal((await json(kept)).verdict.client_span_id, verdict.client_span_id);
});

onPage("a blind sleep draws its sawtooth on the page of its edge", async (page) => {
  await page.goto(`${base}/`);
  await page.getByRole("link", { name: /libcurl-7\.62\.0/ }).first().click();
  await page.waitForURL("**/edge?**");
  const words = await page.locator(".rhythm").innerText();
  assert.match(words, /consistent with a timer: the client looks for its response for 1\.000 s, then does not for 1\.000 s/);
  assert.match(words, /a period of 2\.000 s/);
  for (const chart of ["lag", "gaps", "quantiles", "sizes"]) {
    assert.ok(await isDrawn(page, chart), chart);
  }
  const lags = await page.locator("#lag tbody tr").evaluateAll((rows) =>
    rows.map((row) => ({ waited: Number(row.dataset.x), lag: Number(row.dataset.y), kind: row.dataset.kind })),
  );
  assert.equal(lags.length, 33);
  const flagged = lags.filter(({ kind }) => kind === "flagged");
  assert.equal(flagged.length, (await exchanges("&service=libcurl-7.62.0&flagged=true")).length);
  // A lag ends 0.2 s after an even second.
  const onBeat = flagged.filter(({ waited, lag }) => Math.abs(((waited + lag) % 2) - 0.2) < 0.1);
  assert.ok(onBeat.length >= 8 && onBeat.length > flagged.length / 2, JSON.stringify(flagged));
});

onPage("a point of a chart says what it is and leads to its exchange", async (page) => {
  await page.goto(base + FAULTY);
  const row = page.locator("#lag tbody tr[data-kind=flagged]").first();
  const { x, y, note, href } = await row.evaluate((element) => ({ ...element.dataset }));
  const over = page.locator("#lag .u-over");
  const box = await over.boundingBox();
  // The scales reach a little beyond what they show.
  const [right, low, high] = await page.locator("#lag tbody tr").evaluateAll((rows) => [
    Math.max(...rows.map((one) => Number(one.dataset.x))),
    Math.min(0, ...rows.map((one) => Number(one.dataset.y))),
    Math.max(...rows.map((one) => Number(one.dataset.y))),
  ]);
  const room = (high - low) * 0.06;
  const [bottom, top] = [low < 0 ? low - room : 0, high + room];
  const at = { x: (x / (right * 1.06)) * box.width, y: (box.height * (top - y)) / (top - bottom) };
  await over.hover({ position: at });
  assert.equal(await page.locator("#lag .tip").innerText(), note);
  await over.click({ position: at });
  await page.waitForURL(`**${href}`);
});

onPage("the repaired client has no rhythm", async (page) => {
  await page.goto(base + REPAIRED);
  assert.doesNotMatch(await page.locator(".rhythm").innerText(), /consistent with a timer/);
  assert.equal(await page.locator("#lag").getAttribute("data-period"), null);
  assert.equal(await page.locator("#lag tbody tr").count(), 33);
});

onPage("the clocks of all processes on this machine are bounded around nought, or not at all", async (page) => {
  // Clocks are learnt from verdicts that are settled, which goes on meanwhile.
  await eventually("the same peers", async () => {
    await page.goto(`${base}/clocks`);
    const { peers } = await json("/api/v1/clocks");
    return peers.length > 0 && (await page.locator("table tbody tr").count()) === peers.length;
  });
  const rows = await page.locator("table tbody tr").evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll("th, td.number")].map((cell) => cell.textContent)),
  );
  const number = (text) => Number(text.replace("\u2212", "-").replace(/[^-0-9.]/g, ""));
  for (const [service, lo, hi] of rows.filter((cells) => cells.length === 4)) {
    assert.ok(number(lo) <= 0 && number(hi) >= 0, `${service}: ${lo} to ${hi}`);
  }
});

onPage("the page on health names sources, costs and drops", async (page) => {
  await page.goto(`${base}/health`);
  assert.match(await page.locator(".headline").innerText(), /^The store can be written/);
  const sources = await column(page, "section[aria-labelledby=h-sources] table", 0);
  assert.deepEqual(sources.slice(0, 4), ["Kernel receive stamps", "Packet capture", "Receive queues", "Process samples"]);
  const cost = await page.locator("section[aria-labelledby=h-cost] tbody tr").allInnerTexts();
  assert.equal(cost.length, 2);
  assert.ok((await page.locator("section[aria-labelledby=h-drops] tbody tr").count()) > 3);
});

onPage("a page that is not there says so", async (page, wrong) => {
  await page.goto(`${base}/nowhere`);
  assert.equal(await page.locator("h1").innerText(), "Not found");
  assert.ok(wrong.length > 0, "the answer is an error");
  wrong.length = 0;
});

for (const path of PAGES) {
  onPage(`everything on ${path} is reached by keyboard, and seen to be`, async (page) => {
    await page.goto(base + path);
    // What is marked here would be replaced by an update.
    await page.evaluate(() => document.getElementById("live-switch").click());
    const wanted = await page.evaluate(() => {
      const all = "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']";
      const seen = [...document.querySelectorAll(all)].filter((one) => one.checkVisibility());
      seen.forEach((one, at) => one.setAttribute("data-stop", String(at)));
      return seen.length;
    });
    const reached = new Set();
    for (let press = 0; press < wanted + 5 && reached.size < wanted; press += 1) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate(() => {
        const active = document.activeElement;
        const { outlineStyle, outlineWidth } = getComputedStyle(active);
        return { at: active.dataset.stop, ring: outlineStyle !== "none" && parseFloat(outlineWidth) > 0 };
      });
      if (stop.at === undefined) continue;
      assert.ok(stop.ring, `stop ${stop.at} shows no focus`);
      reached.add(stop.at);
    }
    assert.equal(reached.size, wanted);
  });
}

onPage("the first key leads past the navigation", async (page) => {
  await page.goto(`${base}/`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

for (const colorScheme of ["light", "dark"]) {
  onPage(`what axe knows of accessibility holds on every page, ${colorScheme}`, async (page) => {
    const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
    const { path: exchange } = await laggard();
    const found = [];
    for (const path of [...PAGES, exchange]) {
      await page.goto(base + path);
      await page.evaluate(() => {
        for (const details of document.querySelectorAll("details")) details.open = true;
      });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() =>
        globalThis.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
      );
      found.push(...violations.map(({ id, nodes }) => `${path}: ${id}: ${nodes.map((node) => node.html).slice(0, 3)}`));
    }
    assert.deepEqual(found, []);
  }, { colorScheme });
}

onPage("every page says the same without scripts", async (page) => {
  await page.goto(base + FAULTY);
  await page.locator("#lag summary").click();
  assert.equal(await page.locator("#lag tbody tr a").count(), 33);
  assert.ok(await page.locator("#lag tbody tr").first().isVisible());
  await page.goto(`${base}/exchanges`);
  await page.getByRole("link", { name: "Keep refreshing" }).click();
  assert.equal(await page.locator("meta[http-equiv=refresh]").count(), 1);
}, { javaScriptEnabled: false });

test("the charts are drawn by uPlot as its package has it", async () => {
  for (const [asset, file] of [["uplot.js", "uPlot.iife.min.js"], ["uplot.css", "uPlot.min.css"]]) {
    const served = await (await fetch(`${base}/assets/${asset}`)).text();
    assert.equal(served, readFileSync(require.resolve(`uplot/dist/${file}`), "utf8"));
  }
});

// The last test: what it adds would change the counts of the others.
onPage("a new finding shows at once, is announced, and takes nothing from the reader", async (page) => {
  await page.goto(`${base}/`);
  const before = (await exchanges("&flagged=true")).length;
  await page.locator("#over-time summary").click();
  await page.locator(".edges a").first().focus();
  const focused = await page.evaluate(() => document.activeElement.getAttribute("href"));
  const client = spawn(process.env.SKEWTAP_FAULTY_CLIENT, [
    ...["--server", process.env.SKEWTAP_PROXY, "--otlp", process.env.SKEWTAP_OTLP_HTTP],
    ...["--service", "libcurl-7.62.0", "--method", "expect", "--timeout-ms", "30000", "--delay-ms", "1500"],
  ]);
  await new Promise((resolve) => client.on("exit", resolve));
  await eventually("the finding", async () =>
    (await page.locator(".headline").innerText()).startsWith(`${before + 1} of 87 exchanges flagged`),
  );
  const said = await page.locator("#live-status").textContent();
  assert.equal(said, "Newly flagged: libcurl-7.62.0 to delay-server, client_blind_sleep");
  assert.ok(await page.locator("#over-time details").evaluate((details) => details.open));
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("href")), focused);
  assert.ok(await isDrawn(page, "over-time"));

  const pause = page.getByRole("button", { name: "Pause updates" });
  await pause.click();
  assert.equal(await pause.getAttribute("aria-pressed"), "true");
});
