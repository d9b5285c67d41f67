// The shell: who is asking, where they are, and what is on the screen.

import { api, ApiError, errorText, session } from "./api.js";
import { el, fill } from "./dom.js";
import { loginForm } from "./login.js";
import { themeSwitch } from "./themes.js";

const PLACES = [
  // hash, name in the bar, module, who sees it
  ["ask", "Ask", "./views/ask.js", () => true],
  ["search", "Search", "./views/search.js", () => true],
  ["recommend", "Recommend", "./views/recommend.js", () => true],
  ["documents", "Documents", "./views/documents.js", () => true],
  ["memory", "Memory", "./views/memory.js", () => true],
  ["admin", "Admin", "./views/admin.js", (me) => me.may.admin],
];
const ALSO = { chat: "ask", run: "ask" }; // #/chat/ID and #/run/ID are shown by the view "ask"

const main = document.getElementById("main");
const top = document.getElementById("bar");
const toasts = document.getElementById("toasts");
let leave = null; // what the view on the screen wants done when it goes
let mounting = 0;

const app = {
  api,
  me: null,
  /** Say something for a few seconds. */
  toast(text) {
    const line = el("p", { class: "toast" }, text);
    toasts.append(line);
    setTimeout(() => line.remove(), 6000);
  },
  /** Go to a place such as "#/search". */
  go(hash) {
    if (location.hash === hash) show();
    else location.hash = hash;
  },
};

function place() {
  const [name = "", ...params] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { name: name || "ask", params };
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function drawBar(current) {
  const links = PLACES.filter(([, , , seen]) => seen(app.me)).map(([hash, name]) =>
    el("a", { href: `#/${hash}`, "aria-current": hash === current ? "page" : null }, name));
  fill(top,
    el("a", { class: "brand", href: "#/ask" }, el("img", { src: "/page/icon.svg", alt: "", width: 26, height: 26 }), "Carrel"),
    el("nav", { "aria-label": "Main" }, links),
    el("div", { class: "bar-end" }, themeSwitch(), who()));
}

function who() {
  if (app.me.anonymous) return null;
  return el("span", { class: "who" },
    el("span", { class: "who-name", title: `tenant ${app.me.tenant}` }, app.me.user),
    el("button", { class: "quiet", type: "button", onclick: signOut }, "Sign out"));
}

async function signOut() {
  const left = app.me.signed_in ? await api.post("/logout").catch(() => null) : null;
  session.set("");
  app.me = null;
  if (left && left.provider) location.assign(left.provider);
  else enter();
}

async function show() {
  const { name, params } = place();
  const shown = ALSO[name] || name;
  const found = PLACES.find(([hash, , , seen]) => hash === shown && seen(app.me)) || PLACES[0];
  const turn = (mounting += 1);
  if (leave) leave();
  leave = null;
  drawBar(found[0]);
  try {
    const view = await import(found[2]);
    if (turn !== mounting) return;
    document.title = `${view.title} · Carrel`;
    const root = el("div", { class: `view view-${found[0]}` });
    fill(main, root);
    const left = (await view.mount(root, app, { place: name, id: params[0] || "", rest: params })) || null;
    if (turn !== mounting) { // the person has gone on meanwhile
      if (left) left();
      return;
    }
    leave = left;
    if (turn > 1 && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  } catch (error) {
    if (turn === mounting) fill(main, problem(error));
  }
}

function problem(error) {
  return el("section", { class: "notice problem", role: "alert" },
    el("h1", null, "This did not work"),
    el("p", null, errorText(error)),
    el("p", { class: "row" }, el("button", { type: "button", onclick: () => enter() }, "Try again"),
      el("a", { href: "#/ask" }, "Start again")));
}

async function askForKey(message) {
  if (leave) leave();
  leave = null;
  const turn = (mounting += 1);
  const { login } = await api.get("/api/v1/health").catch(() => ({}));
  if (turn !== mounting) return;
  fill(top, el("span", { class: "brand" }, el("img", { src: "/page/icon.svg", alt: "", width: 26, height: 26 }), "Carrel"),
    el("div", { class: "bar-end" }, themeSwitch()));
  document.title = "Sign in · Carrel";
  fill(main, loginForm(message, login, (key) => { session.set(key); enter(true); }));
  main.querySelector("input").focus();
}

async function enter(tried = false) {
  try {
    app.me = await api.get("/api/v1/me");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) {
      fill(main, problem(error));
      return;
    }
    session.set("");
    askForKey(tried ? "This key is not good here." : "");
    return;
  }
  await show();
}

session.lost = () => { session.set(""); askForKey("Your key is no longer good. Please sign in again."); };
window.addEventListener("hashchange", () => { if (app.me && location.hash.startsWith("#/")) show(); });
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash says where one is
  main.focus();
});
enter();
