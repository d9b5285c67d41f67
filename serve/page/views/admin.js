// What an admin sees: how the server is, jobs, keys, feedback, the audit log.

import { el, fill } from "../dom.js";
import { errorText } from "../api.js";
import { keysSection } from "../manage/keys.js";
import { adoptionSection, auditSection, feedbackSection, jobsSection } from "../manage/lists.js";
import { overview } from "../manage/overview.js";

export const title = "Admin";

const SECTIONS = [
  ["", "Overview", overview], ["jobs", "Jobs", jobsSection], ["keys", "Keys", keysSection],
  ["feedback", "Feedback", feedbackSection], ["recommendations", "Recommendations", adoptionSection], ["audit", "Audit", auditSection],
];

export async function mount(root, app, { rest }) {
  const wanted = (rest || [])[0] || "";
  const [place, , section] = SECTIONS.find(([name]) => name === wanted) || SECTIONS[0];
  const body = el("div");
  fill(root, el("h1", null, "Admin"),
    el("nav", { class: "admin-tabs", "aria-label": "Admin" }, SECTIONS.map(([name, text]) =>
      el("a", { href: name ? `#/admin/${name}` : "#/admin", "aria-current": name === place ? "page" : null }, text))),
    body);
  try {
    return await section(body, app);
  } catch (error) {
    fill(body, el("p", { class: "problem", role: "alert" }, errorText(error)));
    return null;
  }
}
