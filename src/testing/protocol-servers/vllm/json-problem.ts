/**
 * Finds the place of a JSON syntax error, in characters, with the message of Python's parser.
 * **Source:** python/cpython Lib/json/decoder.py.
 */
export function findJsonProblem(text: string): { place: number; problem: string } {
  const place = findPlace(text);
  const before = text.slice(0, place).trimEnd();
  const isAfterValue = before !== "" && !/[[{,:]$/.test(before);
  return { place, problem: isAfterValue ? "Expecting ',' delimiter" : "Expecting value" };
}

/** Returns the place from V8's message, or the end of the text if it has none. */
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
