/** An object as JSON has it, with unchecked members. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True if a value is an object, as opposed to a list, a scalar or `null`. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
