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

/** Return the ranges in which words of the query begin: a word also marks its other forms. */
export function queryRanges(text, query) {
  const stems = new Set(words(query).map(([, , word]) => stem(word)).filter(Boolean));
  return words(text).filter(([, , word]) => stems.has(stem(word))).map(([from, to]) => [from, to]);
}

const SEGMENTER = "Segmenter" in Intl ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

function words(text) {
  if (SEGMENTER) {
    return [...SEGMENTER.segment(text)].filter((one) => one.isWordLike)
      .map((one) => [one.index, one.index + one.segment.length, one.segment]);
  }
  return [...text.matchAll(/[\p{L}\p{N}]+/gu)].map((one) => [one.index, one.index + one[0].length, one[0]]);
}

/** Return what the forms of a word share, "" for a word too short to mean much. */
function stem(word) {
  const small = word.toLocaleLowerCase();
  if (/\p{N}/u.test(small)) return small;
  if (/\p{sc=Han}|\p{sc=Hiragana}|\p{sc=Katakana}|\p{sc=Thai}/u.test(small)) return small.length > 1 ? small : "";
  if (small.length < 4) return "";
  return small.length < 6 ? small.slice(0, 4) : small.slice(0, small.length - 2);
}
