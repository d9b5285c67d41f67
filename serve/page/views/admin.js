// How the server is.

import { el, fill } from "../dom.js";

export const title = "Admin";

export async function mount(root, app) {
  const health = await app.api.get("/api/v1/health");
  fill(root, el("h1", null, "Admin"), el("p", null, `The server says: ${health.status}`));
}
