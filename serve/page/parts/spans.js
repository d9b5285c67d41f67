// Spans of text: the server counts characters (code points), JavaScript counts UTF-16 units.

import { el } from "../dom.js";

/** Return the UTF-16 index of a code point's place. */
export function unitIndex(text, place) {
  let unit = 0;
  for (let seen = 0; seen < place && unit < text.length; seen += 1) {
    unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  }
  return unit;
}

/** Return where a citation's quote stands in a text as [from, to], or null when it is not there. */
export function quoted(text, { start, end, quote }) {
  const [from, to] = [unitIndex(text, start), unitIndex(text, end)];
  if (!quote || text.slice(from, to) === quote) return to > from ? [from, to] : null;
  const found = text.indexOf(quote);
  return found < 0 ? null : [found, found + quote.length];
}

/** Return nodes of the text with the ranges marked; ranges that overlap are joined. */
export function marked(text, ranges, className) {
  const nodes = [];
  let at = 0;
  for (const [from, to] of joined(ranges)) {
    if (from > at) nodes.push(text.slice(at, from));
    nodes.push(el("mark", { class: className }, text.slice(from, to)));
    at = to;
  }
  nodes.push(text.slice(at));
  return nodes;
}

function joined(ranges) {
  const result = [];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}

/** Return the ranges of a text where words of the query stand, in whatever form. */
export function queryRanges(text, query) {
  const wanted = [...new Set(words(query).map(([, , word]) => word.toLocaleLowerCase()))].filter(telling);
  const known = new Map();
  const matches = (word) => {
    if (!known.has(word)) known.set(word, wanted.some((one) => sameWord(one, word)));
    return known.get(word);
  };
  return words(text).filter(([, , word]) => matches(word.toLocaleLowerCase())).map(([from, to]) => [from, to]);
}

/** Return where to cut a long text so that most of the ranges are seen: [from, to]. */
export function window(text, ranges, size) {
  if (text.length <= size || !ranges.length) return [0, Math.min(size, text.length)];
  const seen = (from) => ranges.filter(([a, b]) => a >= from && b <= from + size).length;
  const starts = [0, ...ranges.map(([from]) => Math.max(0, from - 40))];
  let best = 0;
  for (const start of starts) if (seen(start) > seen(best)) best = start;
  const from = best && (text.slice(0, best).search(/\S+$/u) + 1 || best + 1) - 1;
  return [from, Math.min(text.length, from + size)];
}

const SEGMENTER = "Segmenter" in Intl ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

function words(text) {
  if (SEGMENTER) {
    return [...SEGMENTER.segment(text)].filter((one) => one.isWordLike)
      .map((one) => [one.index, one.index + one.segment.length, one.segment]);
  }
  return [...text.matchAll(/[\p{L}\p{N}]+/gu)].map((one) => [one.index, one.index + one[0].length, one[0]]);
}

const NO_SPACES = /\p{sc=Han}|\p{sc=Hiragana}|\p{sc=Katakana}|\p{sc=Thai}/u;

/** Tell whether a word says enough to be worth marking. */
function telling(word) {
  return NO_SPACES.test(word) ? word.length > 1 : word.length > 3 || /\p{N}/u.test(word);
}

/** Tell whether two words are forms of one: they differ in a short ending only. */
function sameWord(a, b) {
  if (a === b) return true;
  if (/\p{N}/u.test(a) || NO_SPACES.test(a)) return false;
  const shorter = Math.min(a.length, b.length);
  let same = 0;
  while (same < shorter && a[same] === b[same]) same += 1;
  return same >= 4 && same >= shorter - 2 && Math.max(a.length, b.length) - same <= 3;
}
