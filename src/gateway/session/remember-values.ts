import { PythonError } from "../../python/python-error.ts";
import { mayChange, rememberExact } from "../../python/json/exact-json.ts";
import { findItems, findMembers } from "../../json/json-members.ts";
import { ClientError } from "../client-error.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * Remembers exactly what the chat template prints of a request's fields: the schemas of its tools.
 *
 * @param text - The JSON that `fields` was read from.
 * @throws ClientError `invalid` for what Python cannot hold either.
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
 * Remembers exactly the arguments of calls that a client gives as objects, and the tools that an item gives, where
 * JavaScript may have changed them.
 *
 * @param list - The JSON list that `items` was read from.
 * @param firstIndex - The place of the first item in the conversation.
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

/** The same where it is not known where in the body its items stand: the whole body is remembered. */
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

/** Returns whether an item holds tools, or arguments that are no text, with a number or a key that looks like one. */
function mayBeChanged(item: unknown): boolean {
  const { content, tool_calls: calls, tools } = (item ?? {}) as Json;
  if (holdsNumber(tools)) return true;
  const blocks = Array.isArray(content) ? (content as readonly (Json | null)[]) : [];
  const chat = Array.isArray(calls) ? (calls as readonly (Json | null)[]) : [];
  return (
    blocks.some((block) => block?.["type"] === "tool_use" && holdsNumber(block["input"])) ||
    chat.some((call) => holdsNumber((call?.["function"] as Json | null | undefined)?.["arguments"]))
  );
}

function holdsNumber(value: unknown): boolean {
  if (typeof value === "number") return true;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, member]) => (!Array.isArray(value) && /^\d/.test(key)) || holdsNumber(member),
  );
}

function bufferOf(text: string | Uint8Array): Buffer {
  if (typeof text === "string") return Buffer.from(text);
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength);
}
