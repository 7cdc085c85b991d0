import type { Ajv2020 } from "ajv/dist/2020.js";

/**
 * Lets a validator check `uniqueItems` in time that grows with the text of the list: its own way
 * compares every object with every other, and a policy writes lists of any length.
 */
export function checkUniqueItemsByText(ajv: Ajv2020): void {
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    error: { message: "must NOT have duplicate items" },
    validate: (isWanted: boolean, items: readonly unknown[]) =>
      !isWanted || new Set(items.map(textOfValue)).size === items.length,
  });
}

/** A text that two values share exactly where JSON Schema counts them as the same. */
function textOfValue(value: unknown): string {
  if (typeof value !== "object" || value === null) {
    return typeof value === "string" ? JSON.stringify(value) : String(value === 0 ? 0 : value);
  }
  if (Array.isArray(value)) return `[${value.map(textOfValue).join()}]`;
  const members = Object.entries(value).map(([key, member]) => [JSON.stringify(key), member]);
  const sorted = members.toSorted(([left], [right]) => (String(left) < String(right) ? -1 : 1));
  return `{${sorted.map(([key, member]) => `${String(key)}:${textOfValue(member)}`).join()}}`;
}
