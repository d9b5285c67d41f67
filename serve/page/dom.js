// Nodes are built here and nowhere else: every text is textContent, never HTML.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "selected", "indeterminate", "htmlFor"]);

/** Let the browser keep a text as a file. */
export function saveFile(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Build an element. `attrs`: class, on… handlers, dataset, properties, else attributes.
 *  null and false are left out; children are nodes, texts, or lists of them. */
export function el(tag, attrs, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || (value === false && !PROPERTIES.has(name))) continue;
    if (name.startsWith("on") && typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "dataset") Object.assign(node.dataset, value);
    else if (PROPERTIES.has(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** Append nodes and texts, however deep the lists; null and false are left out. */
export function add(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** Replace what is in a node. */
export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

let last = 0;

/** Return an id that no other element has. */
export function freshId(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

/** Return a bar from 0 to 1 with its value as text beside it. */
export function bar(share, text, label) {
  const inside = el("span", { class: "bar-fill" });
  inside.style.inlineSize = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return el(
    "span",
    { class: "bar" },
    el("span", { class: "bar-track", "aria-hidden": "true" }, inside),
    el("span", { class: "bar-text" }, label ? el("span", { class: "sr" }, `${label} `) : null, text),
  );
}

/** Return a date of the server in the reader's own way. */
export function dateText(text) {
  const date = new Date(text && text.includes("T") ? text : `${String(text).replace(" ", "T")}Z`);
  if (Number.isNaN(date.getTime())) return text || "";
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** Return the day of a document's own date; a year or a month stay as they are. */
export function dayText(text) {
  const day = /^\d{4}-\d{2}-\d{2}/.exec(text || "");
  const date = day && new Date(`${day[0]}T00:00:00`);
  return date && !Number.isNaN(date.getTime()) ? date.toLocaleDateString(undefined, { dateStyle: "medium" }) : text || "";
}

/** Say "1 passage", "2 passages". */
export function count(number, one, many) {
  return `${number.toLocaleString()} ${number === 1 ? one : many || `${one}s`}`;
}
