// Light, dark, or as the system has it.

import { el } from "./dom.js";

const NAMES = { system: "System", light: "Light", dark: "Dark" };

/** Return the switch. */
export function themeSwitch() {
  const chosen = document.documentElement.dataset.theme || "system";
  const options = Object.entries(NAMES).map(([value, name]) =>
    el("option", { value, selected: value === chosen }, name));
  return el("label", { class: "theme" }, el("span", { class: "sr" }, "Theme"),
    el("select", { onchange: (event) => choose(event.target.value) }, options));
}

function choose(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    if (name === "system") localStorage.removeItem("carrel.theme");
    else localStorage.setItem("carrel.theme", name);
  } catch { /* it holds until the page is closed */ }
}
