// Signing in: a key, kept for this tab only.

import { el } from "./dom.js";

/** Return the form; `done(key)` is called with what was pasted. `login`: where the provider is asked. */
export function loginForm(message, login, done) {
  const field = el("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-hint" });
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) done(field.value.trim());
  };
  return el("form", { class: "login card", onsubmit: submit },
    el("h1", null, "Sign in"),
    message ? el("p", { class: "problem", role: "alert" }, message) : null,
    login ? el("button", { class: "primary", type: "button", onclick: () => location.assign(login) }, "Sign in with your account") : null,
    login ? el("p", { class: "hint" }, "Or with a key:") : null,
    el("label", { for: "key" }, "Your key"),
    field,
    el("p", { class: "hint", id: "key-hint" }, "It begins with carrel_ and is made by “carrel keys create”. It stays in this tab and is forgotten when you close it."),
    el("button", { class: login ? null : "primary", type: "submit" }, login ? "Sign in with the key" : "Sign in"));
}
