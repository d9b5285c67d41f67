// Drawings of the server: SVG as text, parsed, cleaned, and put into the page.

import { el } from "../dom.js";

const ALLOWED = new Set(["svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "title", "desc", "defs", "marker"]);

/** Fetch a drawing; null where the server has none. */
export async function drawing(app, path, label) {
  let text;
  try {
    text = await app.api.text(path);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
  return drawnFrom(text, label);
}

/** Return SVG of the server as a part of the page; null for what is none. */
export function drawnFrom(text, label) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const svg = parsed.documentElement;
  if (svg.localName !== "svg" || parsed.querySelector("parsererror")) return null;
  cleaned(svg);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return el("div", { class: "drawing-box", tabindex: "0", role: "region", "aria-label": label }, document.importNode(svg, true));
}

/** Leave out whatever could load or run something. */
function cleaned(node) {
  for (const child of [...node.children]) {
    if (ALLOWED.has(child.localName)) cleaned(child);
    else child.remove();
  }
  for (const { name, value } of [...node.attributes]) {
    if (name.startsWith("on") || name === "style" || /href$/.test(name) || /url\((?!#)/.test(value)) node.removeAttribute(name);
  }
}

/** Mark a node, and the edge that led to it, as visited; the newest is the current one. */
export function visit(box, node, before) {
  if (!box) return;
  for (const one of box.querySelectorAll(".current")) one.classList.remove("current");
  const quoted = CSS.escape(node);
  for (const one of box.querySelectorAll(`[data-node="${quoted}"]`)) one.classList.add("visited", "current");
  if (!before) return;
  for (const one of box.querySelectorAll(`[data-from="${CSS.escape(before)}"][data-to="${quoted}"]`)) one.classList.add("visited");
}
