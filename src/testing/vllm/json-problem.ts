/**
 * Where a text that is no JSON goes wrong, counted in characters, and what is expected there in the
 * words of Python's reader.
 *
 * **Source:** python/cpython Lib/json/decoder.py.
 */
export function findJsonProblem(text: string): { place: number; problem: string } {
  const place = findPlace(text);
  const before = text.slice(0, place).trimEnd();
  const isBehindValue = before !== "" && !/[[{,:]$/.test(before);
  return { place, problem: isBehindValue ? "Expecting ',' delimiter" : "Expecting value" };
}

/** As this machine's own reader says it; the end of the text where it names no place. */
function findPlace(text: string): number {
  try {
    JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const [, digits] = /position (\d+)/.exec(error.message) ?? [];
    if (digits !== undefined) return Number(digits);
  }
  return text.length;
}
