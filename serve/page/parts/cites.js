// Which mark of an answer belongs to which citation.

/** Number the cited passages in the order in which the claims cite them, from 1. */
export function numbers(claims) {
  const found = new Map();
  for (const claim of claims) {
    for (const one of claim.citations) if (!found.has(one.chunk_id)) found.set(one.chunk_id, found.size + 1);
  }
  return found;
}

/** Return the marks of the answer in reading order:
 *  {from, to, number, claim, spans, evidence}, where answer.slice(from, to) is "[number]". */
export function marksOf(result) {
  const number = numbers(result.claims);
  const evidence = new Map(result.evidence.map((item) => [item.chunk_id, item]));
  const found = [];
  let at = 0;
  for (const claim of inOrder(result)) {
    const chunks = [...new Set(claim.citations.map((one) => one.chunk_id))];
    const tail = chunks.map((chunk) => `[${number.get(chunk)}]`);
    const gap = /(?:```|~~~)$/.test(claim.text) ? "\n" : " "; // below a block of code
    const text = `${claim.text}${gap}${tail.join("")}`;
    let begin = result.answer.indexOf(text, at);
    if (begin < 0) begin = result.answer.indexOf(text);
    if (begin < 0) continue;
    let place = begin + claim.text.length + 1;
    for (const [index, chunk] of chunks.entries()) {
      found.push({
        from: place, to: place + tail[index].length, number: number.get(chunk), claim,
        spans: claim.citations.filter((one) => one.chunk_id === chunk),
        evidence: evidence.get(chunk) || null,
      });
      place += tail[index].length;
    }
    at = place;
  }
  return found.sort((a, b) => a.from - b.from);
}

/** Return the claims as the answer has them: question by question. */
function inOrder(result) {
  const asked = ((result.plan && result.plan.questions) || []).map((one) => one.id);
  return [...result.claims].sort((a, b) => asked.indexOf(a.question_id) - asked.indexOf(b.question_id));
}
