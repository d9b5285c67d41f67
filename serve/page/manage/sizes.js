// Numbers as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Return a number of bytes, such as "1.2 MB". */
export function bytesText(bytes) {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) { value /= 1000; unit += 1; }
  return `${value.toLocaleString(undefined, { maximumFractionDigits: value < 10 && unit ? 1 : 0 })} ${UNITS[unit]}`;
}

/** Return seconds, such as "3 h 20 min". */
export function secondsText(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let rest = Math.round(seconds || 0);
  const said = [];
  for (const [size, name] of parts) {
    const whole = Math.floor(rest / size);
    if (whole) said.push(`${whole} ${name}`);
    rest -= whole * size;
  }
  return said.slice(0, 2).join(" ") || "0 s";
}

/** Return milliseconds, such as "12 ms" or "1.4 s". */
export function msText(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms >= 1000) return `${(ms / 1000).toLocaleString(undefined, { maximumFractionDigits: 1 })} s`;
  return `${ms.toLocaleString(undefined, { maximumFractionDigits: ms < 10 ? 1 : 0 })} ms`;
}
