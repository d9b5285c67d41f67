// The panel that takes files: by a button, or dropped on it.

import { count, el, fill, freshId } from "../dom.js";
import { uploadBoard } from "./board.js";
import { entriesOf, filesBelow, picked, plain } from "./folders.js";
import { bytesText } from "./sizes.js";

const OTHER = "\u0000other"; // no role is named so

/** Return the panel. `target()` is the collection shown; `done(collection)` is called when a file is in. */
export function uploadPanel(app, { target, collections, done }) {
  const board = uploadBoard(app);
  board.done = done;
  const picker = el("input", { type: "file", multiple: true, class: "sr", id: freshId("files"), onchange: () => { take(plain(picker.files)); picker.value = ""; } });
  const folder = el("input", { type: "file", webkitdirectory: true, class: "sr", id: freshId("folder"), onchange: () => { takeFolders(picked(folder.files)); folder.value = ""; } });
  const said = el("p", { class: "hint", role: "status" });
  const into = collectionField(collections, target);
  const readers = readersField(app.me);
  const zone = el("div", { class: "dropzone" },
    el("p", null, el("label", { class: "button", for: picker.id }, "Choose files"), picker, " ",
      el("label", { class: "button plain-button", for: folder.id }, "Choose a folder"), folder, el("span", { class: "soft" }, " or drop files and folders here")),
    el("details", { class: "hint formats" }, el("summary", null, `Up to ${bytesText(app.me.upload_bytes)} each; formats`), app.me.formats),
    said,
    el("div", { class: "row upload-options" }, into.node, readers.node),
    board.list);

  let inside = 0;
  zone.addEventListener("dragenter", (event) => { event.preventDefault(); inside += 1; zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => { inside -= 1; if (inside <= 0) zone.classList.remove("over"); });
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    inside = 0;
    zone.classList.remove("over");
    const entries = entriesOf(event.dataTransfer.items); // they are gone once this handler has ended
    if (entries.some((one) => one.isDirectory)) filesBelow(entries).then(takeFolders);
    else take(plain(event.dataTransfer.files));
  });

  function take(files) {
    board.take(files, { collection: into.value(), role: readers.value() });
  }

  /** Take what can be read below folders, each named by its folders; one folder alone is not named. */
  function takeFolders(found) {
    const known = new Set(app.me.formats.split(" "));
    const seen = found.filter(({ path }) => !path.some((part) => part.startsWith(".")));
    const alone = new Set(seen.map(({ path }) => path[0])).size === 1;
    const named = seen.map(({ path, ...rest }) => ({ name: path.slice(alone ? 1 : 0).join("/") || path[0], ...rest }));
    const isRead = ({ name, error }) => error || known.has(`.${name.split(".").pop().toLowerCase()}`);
    const others = named.filter((one) => !isRead(one)).map((one) => one.name);
    fill(said, others.length ? el("details", null, el("summary", null, `${count(others.length, "file")} of other formats left out`), others.join(", ")) : null);
    take(named.filter(isRead));
  }

  board.resume().catch(() => {}); // the list of documents says what is wrong
  return { node: zone, leave: () => { board.done = () => {}; }, known: into.known };
}

function collectionField(collections, target) {
  const id = freshId("into");
  const options = el("datalist", { id: `${id}-known` });
  const field = el("input", { id, list: `${id}-known`, maxlength: 64, spellcheck: "false", autocomplete: "off", placeholder: "default", size: 18 });
  const known = (names) => fill(options, names.map((name) => el("option", { value: name })));
  known(collections);
  return {
    node: el("span", null, el("label", { for: id }, "Into collection "), field, options),
    known(names) { known(names); field.placeholder = target() || "default"; },
    value: () => field.value.trim() || target() || "default",
  };
}

function readersField(me) {
  const id = freshId("readers");
  const other = el("input", { class: "other-role", maxlength: 64, spellcheck: "false", "aria-label": "Name of the role", placeholder: "role", size: 12, hidden: true });
  const choose = el("select", { id, onchange: () => { other.hidden = choose.value !== OTHER; if (!other.hidden) other.focus(); } },
    el("option", { value: "" }, `Everyone in ${me.tenant}, or the collection’s default`),
    me.roles.map((role) => el("option", { value: role }, `Role ${role}`)),
    el("option", { value: OTHER }, "Another role…"));
  return {
    node: el("span", null, el("label", { for: id }, "Read by "), choose, " ", other),
    value: () => [choose.value === OTHER ? other.value.trim() : choose.value].filter(Boolean),
  };
}
