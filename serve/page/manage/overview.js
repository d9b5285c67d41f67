// How the server is: numbers, drawings and tables of GET /api/v1/metrics, asked for again and again.

import { errorText } from "../api.js";
import { bar, el, fill } from "../dom.js";
import { barChart, lineChart } from "./charts.js";
import { bytesText, msText, secondsText } from "./sizes.js";

const POLL = 4000;
const KEPT = 150; // samples, ten minutes of them
const WHOLE = (value) => Math.round(value).toLocaleString();
const samples = []; // kept while the page is open, so that coming back shows what was

/** Show the section; returns what ends it. */
export async function overview(root, app) {
  const body = el("div");
  const status = el("p", { class: "hint", role: "status" });
  fill(root, status, body);
  let timer = null;
  let over = false;

  async function look() {
    try {
      const [health, metrics] = await Promise.all([app.api.get("/api/v1/health"), app.api.get("/api/v1/metrics")]);
      if (over || !root.isConnected) return;
      samples.push({ at: Date.now(), ...metrics });
      if (samples.length > KEPT) samples.shift();
      status.textContent = "";
      draw(body, health, metrics);
    } catch (error) {
      if (over || !root.isConnected) return;
      if (error.status === 404) {
        status.textContent = "This server keeps no metrics for the page; Prometheus reads /metrics.";
        return;
      }
      status.textContent = `The numbers are old: ${errorText(error)}`;
    }
    timer = setTimeout(look, POLL);
  }

  await look();
  return () => { over = true; clearTimeout(timer); };
}

function draw(body, health, metrics) {
  // Where a person reads a table by keyboard the focus must stay.
  const focused = document.activeElement && body.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  fill(body, tiles(health, metrics), charts(metrics), tables(metrics));
  if (focused) body.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function tiles(health, metrics) {
  const requests = Object.values(metrics.requests || {});
  const total = sum(requests.map((one) => one.count));
  const pools = Object.values(metrics.pools || {});
  const facts = [
    ["Server", health.status], ["Up for", secondsText(metrics.uptime_seconds)], ["Requests", WHOLE(total)],
    ["Errors", WHOLE(sum(requests.map((one) => one.errors)))],
    ["At work", WHOLE(sum(pools.map((one) => one.running)))], ["Waiting", WHOLE(sum(pools.map((one) => one.waiting)))],
    ["Memory", bytesText(metrics.rss_bytes || 0)],
  ];
  return el("dl", { class: "tiles" }, facts.map(([name, value]) => el("div", { class: "tile" }, el("dt", null, name), el("dd", null, value))));
}

function charts(metrics) {
  const over = (read) => samples.map((one) => read(one) ?? 0);
  const pool = (name, what) => over((one) => one.pools?.[name]?.[what]);
  const drawn = [
    lineChart({ title: "Questions", text: WHOLE, series: [{ name: "at work", points: pool("ask", "running") }, { name: "waiting", points: pool("ask", "waiting") }] }),
    lineChart({ title: "Searches", text: WHOLE, series: [{ name: "at work", points: pool("search", "running") }, { name: "waiting", points: pool("search", "waiting") }] }),
    lineChart({ title: "Requests per second", text: (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 }), series: [{ name: "requests", points: rates() }] }),
    lineChart({ title: "Lag of the event loop", text: msText, series: [{ name: "p99", points: over((one) => one.loop_lag_ms?.p99) }, { name: "p50", points: over((one) => one.loop_lag_ms?.p50) }] }),
    lineChart({ title: "Memory", text: bytesText, series: [{ name: "resident", points: over((one) => one.rss_bytes) }] }),
  ];
  const answers = Object.entries(metrics.answers || {});
  if (answers.length) drawn.push(barChart({ title: "How runs ended", bars: answers.map(([name, value]) => [name.replaceAll("_", " "), value]) }));
  const distances = histogram(metrics.distances);
  if (distances.some(([, count]) => count)) drawn.push(barChart({ title: "Distance of the best passage", bars: distances }));
  return el("div", { class: "charts" }, drawn);
}

function rates() {
  const counted = samples.map((one) => [one.at, sum(Object.values(one.requests || {}).map((route) => route.count))]);
  return counted.slice(1).map(([at, count], place) => Math.max(0, ((count - counted[place][1]) / Math.max(1, at - counted[place][0])) * 1000));
}

/** Return [name, count] of each bucket, in order of its upper edge. */
function histogram(buckets) {
  const edge = (name) => (Number.isNaN(Number(name)) ? Infinity : Number(name)); // "more" is the last
  return Object.entries(buckets || {}).sort(([one], [other]) => edge(one) - edge(other));
}

function tables(metrics) {
  const times = (one) => [WHOLE(one.count), msText(one.p50_ms), msText(one.p95_ms)];
  return [
    table("Routes", ["Route", "Requests", "Errors", "Median", "95 %"], byCount(metrics.requests).map(([name, one]) =>
      [name, WHOLE(one.count), WHOLE(one.errors), msText(one.p50_ms), msText(one.p95_ms)])),
    table("Caches", ["Cache", "Hit rate", "Hits", "Misses", "Entries"], Object.entries(metrics.caches || {}).map(([name, one]) =>
      [name, one.rate === null ? "–" : bar(one.rate, `${Math.round(one.rate * 100)} %`), WHOLE(one.hits), WHOLE(one.misses), WHOLE(one.entries)])),
    table("Steps of runs", ["Node", "Steps", "Median", "95 %"], byCount(metrics.nodes).map(([name, one]) => [name, ...times(one)])),
    table("Tools", ["Tool", "Calls", "Median"], byCount(metrics.tools).map(([name, one]) => [name, WHOLE(one.count), msText(one.p50_ms)])),
  ];
}

function byCount(given) {
  return Object.entries(given || {}).sort((one, other) => other[1].count - one[1].count);
}

/** Return a headed table, nothing where it has no rows. */
export function table(heading, names, rows) {
  if (!rows.length) return null;
  return el("section", { class: "admin-section" }, el("h2", null, heading),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": heading }, el("table", null,
      el("thead", null, el("tr", null, names.map((name, place) => el("th", { scope: "col", class: place ? "number" : null }, name)))),
      el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, place) =>
        place ? el("td", { class: "number" }, cell) : el("th", { scope: "row" }, cell))))))));
}

function sum(values) {
  return values.reduce((one, other) => one + (other || 0), 0);
}
