/**
 * A text that two JSON documents share where they say the same, however they are spelled: keys in any
 * order, and numbers as doubles, because that is what they become in every client that reads and
 * prints them. Text that is no JSON stands for itself.
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
    // Nested so deeply that it cannot be gone through.
    if (error instanceof RangeError) return `text:${text}`;
    throw error;
  }
}

/** The same for a value that was read already. */
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
  // Minus zero and zero are one number to whoever prints them.
  return value === 0 ? "0" : (JSON.stringify(value) ?? "null");
}
