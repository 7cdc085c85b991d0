import { isUtf8 } from "node:buffer";
import { byteOrderMark } from "../../text/decode-text.ts";
import { endOfString } from "../../json/json-change.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { rememberExact, writeCompactJson } from "../../json/exact-json.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../../packages/python-values/src/value.ts";

/**
 * Carries values through the MCP client unchanged. The client uses `JSON.parse()` and `JSON.stringify()`, which change
 * `1.0`, large integers and the order of keys. This class replaces such values by a text under a member name that no
 * server uses, and converts the text where the bytes are read or written.
 */
export class ExactMessages {
  /** A member name that no server uses. */
  readonly #name = `exact-${crypto.randomUUID()}`;
  readonly #head = `{"${this.#name}":`;

  /** Returns the stand-in for an object in a message to the server. */
  carry(value: PyDict): Readonly<Record<string, unknown>> {
    return { [this.#name]: writeCompactJson(value) };
  }

  /** Replaces stand-ins in a message to the server by the exact values. */
  outgoing(text: string): string {
    const at = text.indexOf(this.#head);
    if (at === -1) return text;
    const start = at + this.#head.length;
    const end = endOfString(text, start);
    const carried = JSON.parse(text.slice(start, end)) as string;
    // Removes the closing brace of the stand-in, too.
    return text.slice(0, at) + carried + text.slice(end + 1);
  }

  /** Replaces values in a message from the server by stand-ins, so that the client can read it. */
  incoming(bytes: Buffer): string {
    const text = bytes.toString("utf8").replace(new RegExp(`^${byteOrderMark}`), "");
    try {
      if (!isUtf8(bytes)) return refusalOf(parsePythonJson(text), "its message is not UTF-8");
      if (!touched.test(text)) return text;
      return writeCompactJson(readable(this.#hide(parsePythonJson(text))));
    } catch (error) {
      const isDeep = error instanceof PythonError && error.exception === "RecursionError";
      if (isDeep || error instanceof RangeError) return refuseDeep(text);
      // The client reports text that is not JSON.
      if (error instanceof PythonError) return text;
      throw error;
    }
  }

  /** Returns the exact text of an object from the server, if it was replaced by a stand-in. */
  textOf(value: unknown): string | undefined {
    const text = (value as Readonly<Record<string, unknown>> | null | undefined)?.[this.#name];
    return typeof text === "string" ? text : undefined;
  }

  /** Returns a listed tool with its schema as the server wrote it: `exactOf()` has its numbers and key order. */
  toolOf(tool: unknown): unknown {
    const schema = (tool as { readonly inputSchema?: unknown } | null)?.inputSchema;
    const text = this.textOf(schema);
    if (text === undefined) return tool;
    const { [this.#name]: _carried, ...own } = schema as Readonly<Record<string, unknown>>;
    rememberExact(own, text);
    return { ...(tool as object), inputSchema: own };
  }

  #hide(message: PyValue): PyValue {
    const result = isPyDict(message) ? message.get("result") : undefined;
    if (!isPyDict(message) || !isPyDict(result)) return message;
    return new Map(message).set("result", this.#hideResult(result));
  }

  #hideResult(result: PyDict): PyDict {
    if (result.has("protocolVersion")) return readFacts(result);
    const legacy = result.get("toolResult") ?? null;
    if (legacy !== null && !result.has("content")) return this.#hideResult(readLegacy(legacy));
    const shown = withoutNulls(result);
    const content = shown.get("content");
    if (isPyList(content)) {
      shown.set(
        "content",
        content.map((part) => (isPyDict(part) ? withoutNulls(part) : part)),
      );
    }
    const structured = shown.get("structuredContent");
    // The client accepts only an object here.
    if (structured !== undefined) shown.set("structuredContent", this.#textIn(structured));
    const tools = result.get("tools");
    if (isPyList(tools))
      shown.set(
        "tools",
        tools.map((tool) => this.#hideSchema(tool)),
      );
    return shown;
  }

  #hideSchema(tool: PyValue): PyValue {
    const schema = isPyDict(tool) ? tool.get("inputSchema") : undefined;
    if (!isPyDict(tool) || !isPyDict(schema)) return tool;
    const carried = new Map([...schema, ...this.#textIn(schema)]);
    return new Map(tool).set("inputSchema", carried);
  }

  #textIn(value: PyValue): PyDict {
    return new Map([[this.#name, writeCompactJson(value)]]);
  }
}

/** Matches messages that contain values to replace. */
const touched = /"(?:structuredContent|inputSchema|toolResult|capabilities)"|NaN|Infinity|:\s*null/;

/** Converts a tool result of the first protocol (2024-10-07) to the form of later ones. */
function readLegacy(given: PyValue): PyDict {
  if (isPyDict(given) && isPyList(given.get("content"))) return given;
  if (typeof given !== "string") return new Map<string, PyValue>([["structuredContent", given]]);
  const part = new Map<string, PyValue>([
    ["type", "text"],
    ["text", given],
  ]);
  return new Map<string, PyValue>([["content", [part]]]);
}

/**
 * Corrects a server's reply to the first request. Some servers write a list for an empty object,
 * and null for absent members.
 */
function readFacts(result: PyDict): PyDict {
  const facts = withoutAnyNulls(result);
  const given = facts.get("capabilities");
  const capabilities = [...(isPyDict(given) ? withoutAnyNulls(given) : [])].map(
    ([name, value]) => [name, isPyDict(value) ? withoutAnyNulls(value) : new Map()] as const,
  );
  return facts.set("capabilities", new Map<string, PyValue>(capabilities));
}

function withoutAnyNulls(members: PyDict): Map<string, PyValue> {
  return new Map([...members].filter(([, value]) => value !== null));
}

/**
 * Converts a value so that `JSON.parse()` can read it: NaN becomes null, and an infinity becomes a
 * number that is too large.
 */
function readable(value: PyValue): PyValue {
  if (typeof value === "number" && !Number.isFinite(value)) {
    return Number.isNaN(value) ? null : tooLarge * (value > 0 ? 1n : -1n);
  }
  if (isPyList(value)) return value.map(readable);
  return isPyDict(value)
    ? new Map([...value].map(([name, member]) => [name, readable(member)]))
    : value;
}

const tooLarge = 10n ** 400n;

/**
 * Replaces a message that nests too deeply by an error, because the message would crash the client. Lists of tools are
 * passed on, because each tool is checked later.
 */
function refuseDeep(text: string): string {
  const message = parseJsonText(text) as Message | null | undefined;
  // The client reports text that is not JSON.
  if (message == null || Array.isArray(message.result?.tools)) return text;
  const { id = null } = message;
  return refusalOf(new Map([["id", Number.isInteger(id) ? BigInt(id as number) : id]]), tooDeep);
}

interface Message {
  readonly id?: number | string | null;
  readonly result?: { readonly tools?: unknown } | null;
}

const tooDeep = "its message nests too deeply";

/**
 * Optional members of a result or its parts. Some servers send null for them, which the client
 * refuses.
 */
const optional: ReadonlySet<string> = new Set([
  "content",
  "structuredContent",
  "isError",
  "nextCursor",
  "_meta",
  "annotations",
]);

function withoutNulls(members: PyDict): Map<string, PyValue> {
  return new Map([...members].filter(([name, value]) => value !== null || !optional.has(name)));
}

/** Returns an error reply that replaces a message that cannot be read. */
function refusalOf(message: PyValue, problem: string): string {
  const id = isPyDict(message) ? (message.get("id") ?? null) : null;
  const error = new Map<string, PyValue>([
    ["code", -32_603n],
    ["message", problem],
  ]);
  return writeCompactJson(
    new Map<string, PyValue>([
      ["jsonrpc", "2.0"],
      ["id", id],
      ["error", error],
    ]),
  );
}
