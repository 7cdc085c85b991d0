import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { mayChange, rememberExact } from "../../json/exact-json.ts";
import { findItems, findMembers } from "../../json/json-members.ts";
import { ClientError } from "../client-error.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * Remembers the exact values of the request's tools, because the chat template prints them.
 *
 * @param text - The JSON that `fields` was read from.
 * @throws ClientError `invalid` for a value that neither JavaScript nor Python can represent.
 */
export function rememberTools(fields: unknown, text: string | Uint8Array): void {
  const tools = (fields as Json | null)?.["tools"];
  if (!Array.isArray(tools) || tools.length === 0) return;
  const bytes = bufferOf(text);
  const extent = findMembers(bytes)?.members.get("tools");
  remember("tools", () => {
    const found = bytes.toString("utf8", ...(extent ?? []));
    if (mayChange(found)) rememberExact(extent === undefined ? fields : tools, found);
  });
}

/**
 * Remembers the exact values of call arguments that are JSON objects, and of tools in items, if
 * JavaScript may have changed them.
 *
 * @param list - The JSON list that `items` was read from.
 * @param firstIndex - Index of the first item in the conversation.
 */
export function rememberArguments(
  items: readonly unknown[],
  list: string | Uint8Array,
  firstIndex = 0,
): void {
  const changed = items.flatMap((item, index) => (mayBeChanged(item) ? [index] : []));
  if (changed.length === 0) return;
  const bytes = bufferOf(list);
  const extents = findItems(bytes) ?? [];
  for (const index of changed) {
    const extent = extents[index];
    if (extent === undefined) continue;
    remember(`item ${firstIndex + index}`, () =>
      rememberExact(items[index], bytes.toString("utf8", ...extent)),
    );
  }
}

/**
 * Remembers the exact values of the complete body, for use when the items' positions in it are
 * unknown.
 */
export function rememberAll(body: unknown, items: readonly unknown[], bytes: Uint8Array): void {
  if (!items.some(mayBeChanged)) return;
  remember("the body", () => rememberExact(body, bufferOf(bytes).toString("utf8")));
}

function remember(place: string, read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw new ClientError("invalid", `Cannot read ${place}: ${error.message}`, { place });
  }
}

/**
 * True if an item contains tools or object arguments with a number, or with a key that looks like
 * one.
 */
function mayBeChanged(item: unknown): boolean {
  const { content, tool_calls: calls, tools } = (item ?? {}) as Json;
  if (containsNumber(tools)) return true;
  const blocks = Array.isArray(content) ? (content as readonly (Json | null)[]) : [];
  const chat = Array.isArray(calls) ? (calls as readonly (Json | null)[]) : [];
  return (
    blocks.some((block) => block?.["type"] === "tool_use" && containsNumber(block["input"])) ||
    chat.some((call) =>
      containsNumber((call?.["function"] as Json | null | undefined)?.["arguments"]),
    )
  );
}

function containsNumber(value: unknown): boolean {
  if (typeof value === "number") return true;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, member]) => (!Array.isArray(value) && /^\d/.test(key)) || containsNumber(member),
  );
}

function bufferOf(text: string | Uint8Array): Buffer {
  if (typeof text === "string") return Buffer.from(text);
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength);
}
