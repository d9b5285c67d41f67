// The tree of a collection as an outline: what each group of passages is about, in whole sentences.

import { errorText } from "../api.js";
import { el, fill } from "../dom.js";

const DEPTH = 2; // levels below the root

/** Return a part that reads the tree of `target()` when it is opened. */
export function treePanel(app, target) {
  const body = el("div", { role: "status" });
  const panel = el("details", { class: "tree" }, el("summary", null, "Overview"), body);
  panel.ontoggle = async () => {
    if (!panel.open) return;
    body.textContent = "Reading…";
    try {
      fill(body, outline(await app.api.get("/api/v1/tree", { collection: target(), depth: DEPTH })));
    } catch (error) {
      body.textContent = errorText(error);
    }
  };
  return panel;
}

function outline(found) {
  const known = new Map(found.tree.map((one) => [one.node_id, one]));
  const drawn = (node, depth) => {
    const below = node.children.filter((one) => known.has(one));
    return el("details", { open: depth < 2 },
      el("summary", null, node.label),
      el("p", null, node.summary.map((one) => one.text).join(" ")),
      below.length ? el("ul", null, below.map((one) => el("li", null, drawn(known.get(one), depth + 1)))) : null);
  };
  return drawn(found.tree[0], 0);
}
