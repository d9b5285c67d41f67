// The documents of a collection.

import { count, el, fill } from "../dom.js";

export const title = "Documents";

export async function mount(root, app) {
  const { collections } = await app.api.get("/api/v1/collections");
  const list = el("ul", { class: "plain" });
  const choose = el("select", { id: "collection", onchange: () => show(choose.value) },
    collections.map((one) => el("option", { value: one.name }, `${one.name} (${one.documents})`)));
  fill(root, el("h1", null, "Documents"), el("label", { for: "collection" }, "Collection "), choose, list);

  async function show(collection) {
    const { documents } = await app.api.get("/api/v1/documents", { collection });
    fill(list, documents.map((one) => el("li", null, el("strong", { dir: "auto" }, one.title || one.source), ` · ${one.source} · ${count(one.chunks, "passage")}`)));
  }
  if (collections.length) await show(collections[0].name);
}
