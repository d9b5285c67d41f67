// Everything the page says to its server, and to no other.

const STORED = "carrel.key";
let key = read();

function read() {
  try { return sessionStorage.getItem(STORED) || ""; } catch { return ""; }
}

/** An error of the server: its rule as message, and `status`, `code`, `hint`, `id`. */
export class ApiError extends Error {
  constructor(status, body) {
    const given = (body && body.error) || {};
    super(given.rule || `the server answered ${status}`);
    Object.assign(this, { status, code: given.code || "", hint: given.hint || "", id: given.id || "" });
    this.value = given.value ?? null;
  }
}

/** Return one line for a person. */
export function errorText(error) {
  if (error instanceof ApiError) {
    const hint = error.hint && !error.hint.startsWith("see /") ? ` – ${error.hint}` : "";
    return `${error.message}${error.value ? `: ${error.value}` : ""}${hint}${error.id ? ` (${error.id})` : ""}`;
  }
  return error instanceof TypeError ? "the server can not be reached" : String(error.message || error);
}

export const session = {
  get key() { return key; },
  /** Keep the key for this tab only. */
  set(text) {
    key = text;
    try {
      if (text) sessionStorage.setItem(STORED, text);
      else sessionStorage.removeItem(STORED);
    } catch { /* kept in memory */ }
  },
  lost: () => {}, // the shell sets what happens when the key is no longer good
};

/** Send a request. `body`: a value sent as JSON, or a Blob/File as it is. Raises ApiError. */
async function send(method, path, { body, query, signal, raw } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  const isFile = body instanceof Blob;
  if (body !== undefined) headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
  const response = await fetch(path + queryText(query), {
    method, headers, signal, credentials: "same-origin", redirect: "error",
    body: body === undefined ? undefined : isFile ? body : JSON.stringify(body),
  });
  if (!response.ok) {
    const error = new ApiError(response.status, await response.json().catch(() => null));
    if (response.status === 401 && path !== "/api/v1/me") session.lost();
    throw error;
  }
  return raw ? response : response.status === 204 ? null : response.json();
}

function queryText(query) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") params.append(name, one);
    }
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** POST and yield the server-sent events of the answer as {kind, data}. */
async function* stream(path, body, signal) {
  const response = await send("POST", path, { body, signal, raw: true });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Return the event of one block of lines; null for a comment, the sign of life. */
function parsed(block) {
  let kind = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  if (!data.length) return null;
  return { kind, data: JSON.parse(data.join("\n")) };
}

export const api = {
  get: (path, query, options) => send("GET", path, { query, ...options }),
  post: (path, body, options) => send("POST", path, { body, ...options }),
  put: (path, body, query) => send("PUT", path, { body, query }),
  patch: (path, body) => send("PATCH", path, { body }),
  del: (path, query) => send("DELETE", path, { query }),
  text: async (path, query) => (await send("GET", path, { query, raw: true })).text(),
  stream,
};
