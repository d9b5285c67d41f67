// Tabs by the ARIA pattern: arrow keys move, one panel is shown, panels are built when first seen.

import { add, el, freshId } from "../dom.js";

/** Return tabs of [name, build()] pairs; `build` returns a node, a list, or a promise of one.
 *  `shown()` is called whenever a panel is on the page with what it holds. */
export function tabs(label, pages, shown = () => {}) {
  const id = freshId("tab");
  const panels = pages.map(([name], n) => el("div", { role: "tabpanel", id: `${id}-p${n}`, "aria-labelledby": `${id}-t${n}`, tabindex: "0", hidden: true, class: `panel panel-${name.toLowerCase()}` }));
  const buttons = pages.map(([name], n) => el("button", {
    type: "button", role: "tab", id: `${id}-t${n}`, "aria-controls": `${id}-p${n}`, "aria-selected": "false", tabindex: "-1",
    onclick: () => select(n), onkeydown: (event) => keys(event, n),
  }, name));
  const built = new Set();

  function select(n, focus = false) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === n));
      button.tabIndex = at === n ? 0 : -1;
      panels[at].hidden = at !== n;
    });
    if (focus) buttons[n].focus();
    if (built.has(n)) return shown();
    built.add(n);
    Promise.resolve(pages[n][1]()).then(
      (nodes) => add(panels[n], nodes),
      (error) => add(panels[n], el("p", { class: "problem" }, String(error.message || error)))).then(shown);
  }

  function keys(event, n) {
    const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: pages.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select((to + pages.length) % pages.length, true);
  }

  select(0);
  return el("div", { class: "tabs" }, el("div", { role: "tablist", "aria-label": label, class: "tablist" }, buttons), panels);
}
