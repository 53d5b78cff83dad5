// Keeps what changes on a page up to date: every few seconds, and as soon as something is flagged.
"use strict";

(() => {
  const EVERY_MS = 5000;
  // Several findings in a row are one reason to look.
  const TOGETHER_MS = 400;

  const button = document.getElementById("live-switch");
  const status = document.getElementById("live-status");
  if (!button || !document.querySelector("[data-live]")) return;

  let running = true;
  let loading = false;
  let waiting = null;

  const regions = (page) => [...page.querySelectorAll("[data-live]")];

  // Each region as it was sent, before anything was drawn in it.
  const sent = new Map(regions(document).map((region) => [region.id, region.innerHTML]));

  // Where the focus is, in words that hold for the next version of a region.
  const place = (region) => {
    const active = document.activeElement;
    if (!region.contains(active)) return null;
    if (active.id) return `#${CSS.escape(active.id)}`;
    const href = active.getAttribute("href");
    return href ? `a[href="${CSS.escape(href)}"]` : null;
  };

  const replace = (region, next) => {
    const text = next.innerHTML;
    if (sent.get(region.id) === text) return false;
    sent.set(region.id, text);
    const focused = place(region);
    const scrolled = region.querySelector(".scroll")?.scrollLeft ?? 0;
    const open = [...region.querySelectorAll("details")].map((details) => details.open);
    region.replaceChildren(...next.childNodes);
    region.querySelectorAll("details").forEach((details, at) => {
      details.open = open[at] ?? details.open;
    });
    const scroll = region.querySelector(".scroll");
    if (scroll) scroll.scrollLeft = scrolled;
    if (focused) region.querySelector(focused)?.focus({ preventScroll: true });
    return true;
  };

  const load = async () => {
    waiting = null;
    if (loading || !running || document.hidden) return;
    loading = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(`the collector answered ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const changed = regions(document).filter((region) => {
        const next = page.getElementById(region.id);
        return next !== null && replace(region, next);
      });
      document.body.dataset.stale = "false";
      if (changed.length > 0) document.dispatchEvent(new CustomEvent("skewtap:changed"));
    } catch {
      // The collector is away; what is shown is old until it is back.
      document.body.dataset.stale = "true";
    } finally {
      loading = false;
    }
  };

  const soon = () => {
    waiting ??= setTimeout(load, TOGETHER_MS);
  };

  const say = (finding) => {
    const who = `${finding.client_service ?? "unknown"} to ${finding.server_service ?? "unknown"}`;
    const why = finding.causes.length > 0 ? finding.causes.join(", ") : "unexplained";
    status.textContent = `Newly flagged: ${who}, ${why}`;
  };

  const listen = () => {
    const events = new EventSource("/api/v1/events");
    events.addEventListener("finding", (event) => {
      try {
        say(JSON.parse(event.data));
      } catch {
        status.textContent = "An exchange was flagged";
      }
      soon();
    });
    // There were too many to tell; the list has them.
    events.addEventListener("missed", soon);
    return events;
  };

  // A hidden tab holds no connection: browsers allow few to one host, and the shown ones need them.
  let events = null;
  const follow = () => {
    events?.close();
    events = running && !document.hidden ? listen() : null;
    if (events) soon();
  };

  button.hidden = false;
  button.addEventListener("click", () => {
    running = !running;
    button.setAttribute("aria-pressed", String(!running));
    follow();
  });
  document.addEventListener("visibilitychange", follow);
  setInterval(load, EVERY_MS);
  follow();
})();
