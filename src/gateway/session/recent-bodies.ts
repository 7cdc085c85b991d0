import { isUtf8 } from "node:buffer";
import { describeError } from "../../errors.ts";
import { decodeText } from "../../text/decode-text.ts";
import { ClientError } from "../client-error.ts";
import type { RequestedTurn, ClientMessage } from "../conversation.ts";
import type { GatewayDialect, Recollection } from "../dialects/dialect.ts";
import { noHistory, type History } from "../dialects/history.ts";
import { findList, followItems, keptEnds } from "../dialects/list-in-body.ts";
import type { FieldCache } from "./field-cache.ts";
import { PrefixHash } from "./prefix-hash.ts";
import { rememberAll, rememberArguments, rememberTools } from "./remember-values.ts";

/** Maximum number of remembered bodies. Each is one conversation of the session. */
const keptBodies = 4;

/**
 * Number of cuts per body: one after each of its last items. Several are needed because clients
 * mark the newest messages for a cache and move the mark with the next request.
 */
const keptCuts = keptEnds;

/** A position in a body, after an item of its conversation. */
interface Cut {
  /** Offset in bytes. */
  readonly length: number;
  /** Hash of the bytes before the offset. */
  readonly hash: string;
  readonly messageCount: number;
  /** The history up to the offset. Its messages are the first ones of the body. */
  readonly history: Omit<History, "messages">;
}

/** The data about a body. The text itself is not kept. */
interface RecentBody {
  readonly dialect: GatewayDialect;
  /** Hash of the complete body. */
  readonly hash: string;
  /** Offset of the conversation's first item, in bytes. */
  readonly start: number;
  readonly messages: readonly ClientMessage[];
  /** The cuts, in order of their offsets. */
  readonly cuts: readonly Cut[];
}

/** A new body, with the earlier body that shares its start. */
export interface RecognisedBody {
  readonly bytes: Uint8Array;
  /** Hash of the complete body. */
  readonly hash: string;
  /** The longest shared start with an earlier body. `walk` has hashed the bytes up to `cut`. */
  readonly shared?: { readonly body: RecentBody; readonly cut: Cut; readonly walk: PrefixHash };
}

/**
 * Remembers a session's newest bodies. Clients send the complete conversation with each request. If
 * a body starts with the same bytes as an earlier one, only the items after the shared start are
 * read. The result equals a complete read.
 */
export class RecentBodies {
  /** Least recent first. */
  #kept: RecentBody[] = [];
  readonly #fields: FieldCache;

  /** @param fields - Cache that the sessions of a gateway share. */
  constructor(fields: FieldCache) {
    this.#fields = fields;
  }

  /** Finds the earlier body with the longest shared start. */
  recognise(dialect: GatewayDialect, bytes: Uint8Array): RecognisedBody {
    const walk = new PrefixHash(bytes);
    let shared: RecognisedBody["shared"];
    const cuts = this.#kept
      .filter((body) => body.dialect === dialect)
      .flatMap((body) => body.cuts.map((cut) => ({ body, cut })))
      .filter(({ cut }) => cut.length < bytes.length)
      .toSorted((left, right) => left.cut.length - right.cut.length);
    for (const { body, cut } of cuts) {
      if (walk.upTo(cut.length) === cut.hash) shared = { body, cut, walk: walk.fork() };
    }
    return { bytes, hash: walk.upTo(bytes.length), ...(shared && { shared }) };
  }

  /**
   * Reads a body.
   *
   * @param options.keeps - True if later bodies may continue from this one, which costs memory
   *   while the session is open. Default true.
   * @throws ClientError `invalid` if the body cannot be read.
   */
  read(
    dialect: GatewayDialect,
    found: RecognisedBody,
    recollection: Recollection,
    { keeps = true }: { readonly keeps?: boolean | undefined } = {},
  ): RequestedTurn {
    const options = { dialect, recollection, keeps };
    return this.#readOn(found, options) ?? this.#readComplete(found, options);
  }

  /** Stops later bodies from continuing from the ones with this hash. */
  forget(hash: string): void {
    this.#kept = this.#kept.filter((body) => body.hash !== hash);
  }

  /** Reads the items after the shared start. Returns `undefined` if a complete read is needed. */
  #readOn(
    { bytes, hash, shared }: RecognisedBody,
    options: ReadOptions,
  ): RequestedTurn | undefined {
    if (shared === undefined) return undefined;
    const { body, cut, walk } = shared;
    const { dialect, recollection, keeps } = options;
    const rest = followItems(bytes, cut.length);
    if (rest === undefined || !isUtf8(bytes.subarray(cut.length))) return undefined;
    try {
      const fields = this.#fieldsAround(bytes, { ...rest, start: body.start }, dialect);
      if (fields === undefined) return undefined;
      // The text starts with a comma, or is white space.
      const list = `[0${textOf(bytes, cut.length, rest.end)}]`;
      const added = JSON.parse(list) as unknown[];
      rememberArguments(added, list, cut.history.itemCount - 1);
      const steps = readSteps(added.slice(1), options, historyAt(body, cut));
      const history = steps.at(-1)!;
      const request = dialect.decode(fields, recollection, history);
      if (!keeps) return request;
      const cuts = [
        ...body.cuts.filter(({ length }) => length <= cut.length),
        ...cutsAt(walk, rest.itemEnds, steps.slice(1)),
      ].slice(-keptCuts);
      // A continuation of a complete body replaces it.
      if (cut === body.cuts.at(-1)) this.#kept.splice(this.#kept.indexOf(body), 1);
      this.#keep({ dialect, hash, start: body.start, messages: history.messages, cuts });
      return request;
    } catch (error) {
      if (isUnreadable(error)) return undefined;
      throw error;
    }
  }

  #readComplete({ bytes, hash }: RecognisedBody, options: ReadOptions): RequestedTurn {
    const { dialect, recollection, keeps } = options;
    const value = parseBody(bytes);
    const items = (value as Readonly<Record<string, unknown>> | null)?.[dialect.historyField];
    if (!Array.isArray(items) || items.length === 0) return dialect.decode(value, recollection);
    const found = findList(bytes, dialect.historyField);
    // If a field occurs twice, JSON uses the last one, but `findList()` found the first.
    const isOne = found !== undefined && this.#fieldsAround(bytes, found, dialect) !== undefined;
    const place = isOne ? found : undefined;
    if (place === undefined) rememberAll(value, items, bytes);
    else rememberArguments(items, bytes.subarray(place.start - 1, place.end + 1));
    let steps: readonly History[];
    try {
      steps = readSteps(items, options, noHistory);
    } catch (error) {
      // A complete decode reports the first error in the body's order.
      if (isUnreadable(error)) return dialect.decode(value, recollection);
      throw error;
    }
    const request = dialect.decode(value, recollection, steps.at(-1));
    if (!keeps || place === undefined) return request;
    const { messages } = steps.at(-1)!;
    const cuts = cutsAt(new PrefixHash(bytes), place.itemEnds, steps.slice(1));
    this.#keep({ dialect, hash, start: place.start, messages, cuts });
    return request;
  }

  /**
   * Returns all fields except the conversation, which is empty. Returns `undefined` if the field
   * occurs again later.
   */
  #fieldsAround(
    bytes: Uint8Array,
    { start, end }: { readonly start: number; readonly end: number },
    { historyField }: GatewayDialect,
  ): object | undefined {
    const after = this.#fields.after(textOf(bytes, end + 1, bytes.length), historyField);
    return after && { ...this.#fields.before(textOf(bytes, 0, start)), ...after };
  }

  #keep(body: RecentBody): void {
    this.#kept.push(body);
    if (this.#kept.length > keptBodies) this.#kept.shift();
  }
}

interface ReadOptions {
  readonly dialect: GatewayDialect;
  readonly recollection: Recollection;
  readonly keeps: boolean;
}

function historyAt({ messages }: RecentBody, { messageCount, history }: Cut): History {
  const isWhole = messageCount === messages.length;
  return { ...history, messages: isWhole ? messages : messages.slice(0, messageCount) };
}

/** Reads items. Returns the history before the last `keptCuts` items, and the one after each of these. */
function readSteps(
  items: readonly unknown[],
  { dialect, recollection }: ReadOptions,
  before: History,
): readonly History[] {
  const single = Math.max(0, items.length - keptCuts);
  const first =
    single === 0 ? before : dialect.readHistory(items.slice(0, single), recollection, before);
  const steps = [first];
  for (const item of items.slice(single)) {
    steps.push(dialect.readHistory([item], recollection, steps.at(-1)!));
  }
  return steps;
}

/** Returns the cuts after the last items. */
function cutsAt(
  walk: PrefixHash,
  itemEnds: readonly number[],
  steps: readonly History[],
): readonly Cut[] {
  return steps.map((step, index) => {
    const { messages, ...history } = step;
    const length = itemEnds[itemEnds.length - steps.length + index]!;
    const hash = walk.upTo(length);
    return { length, hash, messageCount: messages.length, history };
  });
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8", from, to);
}

function isUnreadable(error: unknown): boolean {
  return (
    error instanceof ClientError || error instanceof SyntaxError || error instanceof RangeError
  );
}

function parseBody(bytes: Uint8Array): unknown {
  try {
    const body: unknown = JSON.parse(decodeText(bytes));
    rememberTools(body, bytes);
    return body;
  } catch (error) {
    if (error instanceof ClientError) throw error;
    throw new ClientError("invalid", `Cannot read the body: ${describeError(error)}`);
  }
}
