import { parseJsonText } from "../json/parse-json.ts";

/** Parses a JSON object. Returns `undefined` for any other text. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = parseJsonText(text);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}
