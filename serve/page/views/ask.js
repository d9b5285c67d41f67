// Questions and their answers.

import { el, fill } from "../dom.js";

export const title = "Ask";

export async function mount(root, app) {
  fill(root, el("h1", null, "Ask"));
}
