/**
 * Returns a text that is equal for JSON documents with equal values. Key order does not matter, and
 * numbers are compared as doubles, because clients read and print them so. Text that is not JSON
 * equals only itself.
 */
export function jsonKey(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return `text:${text}`;
    throw error;
  }
  try {
    return `json:${write(value)}`;
  } catch (error) {
    // The value is nested too deeply to traverse.
    if (error instanceof RangeError) return `text:${text}`;
    throw error;
  }
}

/** Returns the key of a parsed value. See `jsonKey()`. */
export function valueKey(value: unknown): string {
  return `json:${write(value)}`;
}

function write(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${write(member)}`);
    return `{${members.join(",")}}`;
  }
  // Clients print -0 as 0.
  return value === 0 ? "0" : (JSON.stringify(value) ?? "null");
}
