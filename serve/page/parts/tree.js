// The tree of a collection as an outline: what each group of passages is about, in whole sentences.

import { errorText } from "../api.js";
import { el, fill } from "../dom.js";

const DEPTH = 2; // levels below the root
const NAMED = 5; // keywords that name a node without a title

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
  const drawn = (node, above, depth) => {
    const inside = new Set([...above, node.node_id]);
    const below = node.children.filter((one) => known.has(one) && !inside.has(one));
    return el("details", { open: depth < 2 },
      el("summary", null, `${node.title || node.keywords.slice(0, NAMED).join(", ")} (${node.leaves})`),
      el("p", null, node.summary.map((one) => one.text).join(" ")),
      below.length ? el("ul", null, below.map((one) => el("li", null, drawn(known.get(one), inside, depth + 1)))) : null);
  };
  return drawn(found.tree[0], new Set(), 0);
}
