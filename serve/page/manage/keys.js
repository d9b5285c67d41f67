// The keys of the tenant: made, shown once, revoked.

import { errorText } from "../api.js";
import { dateText, el, fill } from "../dom.js";
import { confirmed } from "./confirm.js";

/** Show the section. */
export async function keysSection(root, app) {
  const user = el("input", { id: "key-user", maxlength: 64, spellcheck: "false", autocomplete: "off", "aria-describedby": "key-user-hint" });
  const roles = el("input", { id: "key-roles", spellcheck: "false", autocomplete: "off", placeholder: "writer, editor" });
  const days = el("input", { id: "key-days", type: "number", min: 1, max: 36500, placeholder: "never" });
  const status = el("p", { class: "problem", role: "alert" });
  const secret = el("div", { "aria-live": "polite" });
  const body = el("tbody");
  const form = el("form", { class: "key-form", onsubmit: (event) => { event.preventDefault(); create(); } },
    el("label", null, "User", user), el("label", null, "Roles", roles), el("label", null, "Expires after days", days),
    el("button", { type: "submit", class: "primary" }, "Create key"));
  fill(root, form, el("p", { class: "hint", id: "key-user-hint" }, "Without a user name the key is a user of its own."), status, secret,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Keys" }, el("table", null,
      el("thead", null, el("tr", null, ["User", "Key", "Roles", "Created", "Expires", "State"].map((name) => el("th", { scope: "col" }, name)),
        el("th", { scope: "col" }, el("span", { class: "sr" }, "Actions")))), body)));
  await refresh();

  async function refresh() {
    const { keys } = await app.api.get("/api/v1/keys");
    fill(body, keys.reverse().map((key) => row(key, () => revoke(key))));
  }

  async function create() {
    status.textContent = "";
    const body = { user: user.value.trim(), roles: roles.value.split(",").map((one) => one.trim()).filter(Boolean) };
    if (days.value) body.expires_days = Number(days.value);
    try {
      const made = await app.api.post("/api/v1/keys", body);
      form.reset();
      showOnce(made);
      await refresh();
    } catch (error) {
      status.textContent = errorText(error);
    }
  }

  function showOnce(made) {
    const text = el("code", null, made.key);
    const copy = el("button", { type: "button", onclick: () => copied(made.key, text, copy) }, "Copy");
    fill(secret, el("section", { class: "card secret" },
      el("h3", null, `The key of ${made.user}`),
      el("p", null, "It is shown this once. Copy it now; the server keeps only its hash."), text,
      el("div", { class: "row" }, copy, el("button", { type: "button", class: "quiet", onclick: () => fill(secret) }, "Hide"))));
  }

  async function revoke(key) {
    const agreed = await confirmed({ heading: `Revoke the key of ${key.user}?`, text: "From now on it opens nothing. This can not be undone.", action: "Revoke" });
    if (!agreed) return;
    try {
      await app.api.del(`/api/v1/keys/${encodeURIComponent(key.id)}`);
      await refresh();
    } catch (error) {
      status.textContent = errorText(error);
    }
  }
}

async function copied(text, node, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(node); // where the clipboard is closed: ready for Ctrl-C
    button.textContent = "Selected, press Ctrl-C";
  }
}

function row(key, revoke) {
  const expired = key.expires_at && new Date(key.expires_at) <= new Date();
  const state = key.revoked_at ? "revoked" : expired ? "expired" : "valid";
  return el("tr", null,
    el("th", { scope: "row", class: state === "valid" ? null : "revoked" }, key.user),
    el("td", null, el("code", null, key.id)), el("td", null, key.roles.map((role) => [el("span", { class: "chip" }, role), " "])),
    el("td", { class: "date" }, dateText(key.created_at)), el("td", { class: "date" }, key.expires_at ? dateText(key.expires_at) : "never"),
    el("td", null, state),
    el("td", { class: "end" }, state === "valid" ? el("button", { type: "button", class: "quiet danger-text", "aria-label": `Revoke ${key.id} of ${key.user}`, onclick: revoke }, "Revoke") : ""));
}
