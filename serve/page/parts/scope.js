// What a question is about: one collection or all of them, and filters of their documents.

import { el } from "../dom.js";

const MOST = 16; // collections of one question
const HINT = "date>=2020, author=Smith";

/** Return the options of a choice of collections; several have their names joined by commas. */
export function collectionOptions(collections) {
  const names = collections.map((one) => one.name);
  const all = names.length > 1 && names.length <= MOST ? [el("option", { value: names.join(",") }, "all collections")] : [];
  return [...names.map((name) => el("option", { value: name }, name)), ...all];
}

export function whereField(id) {
  return el("input", { type: "text", id, dir: "auto", placeholder: HINT, size: "24", title: "FIELD=VALUE, with != < <= > >= or ~ (contains); several separated by commas" });
}

export function whereLabel(field) {
  return el("label", null, "Only where ", field);
}

/** Return the filters written in a field; a comma before a new comparison begins another one. */
export function filtersOf(field) {
  return field.value.split(/,(?=[^,=!<>~]+(?:!=|[=<>~]))/).map((one) => one.trim()).filter(Boolean);
}
