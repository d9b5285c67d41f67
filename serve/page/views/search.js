// Passages without an answer.

import { el, fill } from "../dom.js";

export const title = "Search";

export async function mount(root, app) {
  fill(root, el("h1", null, "Search"));
}
