import { isObject, type JsonObject } from "../values/is-object.ts";
import { parseJsonText } from "../json/parse-json.ts";

/** Parses a JSON object. Returns `undefined` for any other text. */
export function parseJsonObject(text: string): JsonObject | undefined {
  const value = parseJsonText(text);
  return isObject(value) ? value : undefined;
}
