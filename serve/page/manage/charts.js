// Small drawings of numbers, each with its text beside it.

import { el, freshId } from "../dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDE = 320;
const HIGH = 110;
const BASE = HIGH - 4;
const TOP = 16;

function svg(tag, attrs, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attrs || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Draw series over time: {title, series: [{name, points}], text}; `text(value)` writes a number. */
export function lineChart({ title, series, text }) {
  const values = series.flatMap((one) => one.points);
  const most = niceTop(Math.max(0, ...values));
  const length = Math.max(2, ...series.map((one) => one.points.length));
  const drawn = series.map((one, place) => svg("polyline", { class: `line s${place}`, points: polyline(one.points, length, most) }));
  const latest = series.map((one) => `${one.name} ${text(one.points.at(-1) ?? 0)}`);
  return figure(title, `${title}, now: ${latest.join(", ")}; the scale ends at ${text(most)}`, [
    svg("line", { class: "axis", x1: 0, x2: WIDE, y1: BASE, y2: BASE }),
    svg("line", { class: "axis", x1: 0, x2: WIDE, y1: TOP, y2: TOP }),
    svg("text", { x: 0, y: TOP - 4 }, text(most)),
    ...drawn,
  ], legend(series.map((one, place) => [place, one.name, text(one.points.at(-1) ?? 0)])));
}

function polyline(points, length, most) {
  const first = length - points.length; // the newest stands at the right
  return points.map((value, place) => {
    const x = ((first + place) / (length - 1)) * WIDE;
    return `${x.toFixed(1)},${(BASE - (value / most) * (BASE - TOP)).toFixed(1)}`;
  }).join(" ");
}

function niceTop(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= most);
}

/** Draw counts as bars: {title, bars: [[name, count]], text}; the names stand below. */
export function barChart({ title, bars, text = (value) => value.toLocaleString() }) {
  const most = Math.max(1, ...bars.map(([, value]) => value));
  const step = Math.min(WIDE / 5, WIDE / Math.max(1, bars.length));
  const drawn = bars.flatMap(([, value], place) => {
    const height = (value / most) * (BASE - TOP);
    return [svg("rect", { class: "b", x: (place * step + step * 0.12).toFixed(1), width: (step * 0.76).toFixed(1), y: (BASE - height).toFixed(1), height: height.toFixed(1), rx: 2 })];
  });
  const said = bars.map(([name, value]) => `${name} ${text(value)}`);
  return figure(title, `${title}: ${said.join(", ") || "nothing yet"}`, [
    svg("line", { class: "axis", x1: 0, x2: WIDE, y1: BASE, y2: BASE }), ...drawn,
  ], el("ul", { class: "legend" }, bars.map(([name, value]) => el("li", null, `${name} `, el("b", null, text(value))))));
}

function figure(title, description, shapes, below) {
  const id = freshId("chart");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-labelledby": id });
  drawing.append(svg("title", { id }), ...shapes);
  drawing.firstChild.textContent = description;
  return el("figure", { class: "chart" }, el("figcaption", null, title), drawing, below);
}

function legend(entries) {
  return el("ul", { class: "legend" }, entries.map(([place, name, value]) =>
    el("li", null, svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, svg("line", { class: `line s${place}`, x1: 0, x2: 22, y1: 4, y2: 4 })), `${name} `, el("b", null, value))));
}
