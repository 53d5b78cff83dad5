// A browser on the pages of a running collector, which notes whatever a page does wrong.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Where the collector's pages are, such as `http://127.0.0.1:4390`. */
export const base = process.env.SKEWTAP_PAGES;
assert.ok(base, "SKEWTAP_PAGES is not set; run lab/browser.sh");

/** Starts Chromium. */
export const launch = () => {
  const executablePath = PROGRAMS.find((program) => existsSync(program));
  assert.ok(executablePath, "no Chromium; run lab/install.sh chromium");
  const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--no-first-run", ...quiet] });
};

/**
 * Opens an empty page. `wrong` holds what went wrong on it so far: errors of scripts, refusals of
 * the content policy, answers that are errors, and requests to anybody but the collector.
 */
export const open = async (browser, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && origin !== base) wrong.push(`asked ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) wrong.push(`${response.status()} from ${response.url()}`);
  });
  return { page, wrong, close: () => context.close() };
};

/** Waits until `holds` gives something, and returns it. */
export const eventually = async (what, holds, seconds = 30) => {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const found = await holds();
    if (found) return found;
    assert.ok(Date.now() < deadline, `${what} did not come within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/** Whether anything but one colour is on the canvas of a chart. */
export const isDrawn = (page, chart) =>
  page.locator(`#${chart} canvas`).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Uint32Array(data.buffer);
    return pixels.some((pixel) => pixel !== pixels[0]);
  });

/** The numbers in the cells of a column, counted from 0. */
export const column = (page, table, at) =>
  page.locator(`${table} tbody tr`).evaluateAll(
    (rows, index) => rows.map((row) => row.children[index].textContent.trim()),
    at,
  );
