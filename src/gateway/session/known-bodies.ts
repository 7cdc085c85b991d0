import { isUtf8 } from "node:buffer";
import { describeError } from "../../errors.ts";
import { decodeText } from "../../text/decode-text.ts";
import { ClientError } from "../client-error.ts";
import type { AskedTurn, ClientAssistant, ClientMessage } from "../conversation.ts";
import type { GatewayDialect, Recollection } from "../dialects/dialect.ts";
import { noHistory, type History } from "../dialects/history.ts";
import { findList, followItems, keptEnds } from "../dialects/list-in-body.ts";
import type { FieldCache } from "./field-cache.ts";
import { PrefixHash } from "./prefix-hash.ts";
import { rememberAll, rememberArguments, rememberTools } from "./remember-values.ts";

/** So many bodies are known: conversations of one session that go on side by side. */
const keptBodies = 4;

/**
 * A body is known up to the end of each of its last items, so many. Clients that mark the newest
 * messages for a cache change them with the next request.
 */
const keptCuts = keptEnds;

/** A place in a body, behind an item of its conversation. */
interface Cut {
  /** Bytes before it. */
  readonly length: number;
  /** Of these bytes. */
  readonly hash: string;
  readonly itemCount: number;
  readonly messageCount: number;
  readonly openTurn: ClientAssistant | undefined;
  /** See `History`. */
  readonly endsInText: boolean;
  readonly addedTools: History["addedTools"];
}

/** What is kept of a body. Not its text: what was read of it is in memory for other reasons. */
interface KnownBody {
  readonly dialect: GatewayDialect;
  /** Of all of it. */
  readonly hash: string;
  /** Where the items of its conversation begin. */
  readonly start: number;
  readonly messages: readonly ClientMessage[];
  /** The first comes first. */
  readonly cuts: readonly Cut[];
}

/** A body that has come, and the body that it begins like. */
export interface RecognisedBody {
  readonly bytes: Uint8Array;
  /** Of all of it. */
  readonly hash: string;
  /** How far an earlier body began alike. */
  readonly shared?: { readonly body: KnownBody; readonly cut: Cut; readonly walk: PrefixHash };
}

/**
 * The newest bodies of a session. Clients send the whole conversation with each request: a body that
 * begins like an earlier one, byte for byte, is read from the first item on in which they differ.
 * What is read is exactly what reading all of it would give.
 */
export class KnownBodies {
  /** The least recent first. */
  #kept: KnownBody[] = [];
  readonly #fields: FieldCache;

  /** @param fields - Shared by the sessions of a gateway. */
  constructor(fields: FieldCache) {
    this.#fields = fields;
  }

  /** Finds the body that a new one begins like for longest. */
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
   * @param options.keeps - Whether later ones may go on from it. Default true. What is kept takes
   *   memory for as long as the session is open.
   * @throws ClientError `invalid` where it cannot be read.
   */
  read(
    dialect: GatewayDialect,
    found: RecognisedBody,
    recollection: Recollection,
    { keeps = true }: { readonly keeps?: boolean | undefined } = {},
  ): AskedTurn {
    const options = { dialect, recollection, keeps };
    return this.#readOn(found, options) ?? this.#readWhole(found, options);
  }

  /** Later bodies do not go on from those of that hash any more. */
  forget(hash: string): void {
    this.#kept = this.#kept.filter((body) => body.hash !== hash);
  }

  /** Reads what an earlier body does not have; nothing where that cannot be done for any reason. */
  #readOn({ bytes, hash, shared }: RecognisedBody, options: ReadOptions): AskedTurn | undefined {
    if (shared === undefined) return undefined;
    const { body, cut, walk } = shared;
    const { dialect, recollection, keeps } = options;
    const rest = followItems(bytes, cut.length);
    if (rest === undefined || !isUtf8(bytes.subarray(cut.length))) return undefined;
    try {
      const fields = this.#fieldsAround(bytes, { ...rest, start: body.start }, dialect);
      if (fields === undefined) return undefined;
      // The rest begins with a comma, or there is nothing but space.
      const list = `[0${textOf(bytes, cut.length, rest.end)}]`;
      const added = JSON.parse(list) as unknown[];
      rememberArguments(added, list, cut.itemCount - 1);
      const steps = readSteps(added.slice(1), options, historyAt(body, cut));
      const history = steps.at(-1)!;
      const asked = dialect.decode(fields, recollection, history);
      if (!keeps) return asked;
      const cuts = [
        ...body.cuts.filter(({ length }) => length <= cut.length),
        ...cutsAt(walk, rest.itemEnds, steps.slice(1)),
      ].slice(-keptCuts);
      // What goes on from a body's end takes its place.
      if (cut === body.cuts.at(-1)) this.#kept.splice(this.#kept.indexOf(body), 1);
      this.#keep({ dialect, hash, start: body.start, messages: history.messages, cuts });
      return asked;
    } catch (error) {
      if (isUnreadable(error)) return undefined;
      throw error;
    }
  }

  #readWhole({ bytes, hash }: RecognisedBody, options: ReadOptions): AskedTurn {
    const { dialect, recollection, keeps } = options;
    const value = parseBody(bytes);
    const items = (value as Readonly<Record<string, unknown>> | null)?.[dialect.historyField];
    if (!Array.isArray(items) || items.length === 0) return dialect.decode(value, recollection);
    const found = findList(bytes, dialect.historyField);
    // A field that is there twice counts as the last has it, and the first was found.
    const isOne = found !== undefined && this.#fieldsAround(bytes, found, dialect) !== undefined;
    const place = isOne ? found : undefined;
    if (place === undefined) rememberAll(value, items, bytes);
    else rememberArguments(items, bytes.subarray(place.start - 1, place.end + 1));
    let steps: readonly History[];
    try {
      steps = readSteps(items, options, noHistory);
    } catch (error) {
      // What is wrong is told in the order in which a body is read.
      if (isUnreadable(error)) return dialect.decode(value, recollection);
      throw error;
    }
    const asked = dialect.decode(value, recollection, steps.at(-1));
    if (!keeps || place === undefined) return asked;
    const { messages } = steps.at(-1)!;
    const cuts = cutsAt(new PrefixHash(bytes), place.itemEnds, steps.slice(1));
    this.#keep({ dialect, hash, start: place.start, messages, cuts });
    return asked;
  }

  /** All fields of a body but its conversation, which is empty; nothing where another one counts. */
  #fieldsAround(
    bytes: Uint8Array,
    { start, end }: { readonly start: number; readonly end: number },
    { historyField }: GatewayDialect,
  ): object | undefined {
    const behind = this.#fields.behind(textOf(bytes, end + 1, bytes.length), historyField);
    return behind && { ...this.#fields.before(textOf(bytes, 0, start)), ...behind };
  }

  #keep(body: KnownBody): void {
    this.#kept.push(body);
    if (this.#kept.length > keptBodies) this.#kept.shift();
  }
}

interface ReadOptions {
  readonly dialect: GatewayDialect;
  readonly recollection: Recollection;
  readonly keeps: boolean;
}

function historyAt({ messages }: KnownBody, cut: Cut): History {
  const { itemCount, messageCount, openTurn, endsInText, addedTools } = cut;
  return {
    messages: messageCount === messages.length ? messages : messages.slice(0, messageCount),
    itemCount,
    ...(openTurn !== undefined && { openTurn }),
    ...(endsInText && { endsInText }),
    ...(addedTools !== undefined && { addedTools }),
  };
}

/** Reads items: what they come to before the last few, and then behind each of these. */
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

/** The cuts behind the last items. */
function cutsAt(
  walk: PrefixHash,
  itemEnds: readonly number[],
  steps: readonly History[],
): readonly Cut[] {
  return steps.map((step, index) => {
    const { messages, itemCount, openTurn, endsInText = false, addedTools } = step;
    const length = itemEnds[itemEnds.length - steps.length + index]!;
    const hash = walk.upTo(length);
    const messageCount = messages.length;
    return { length, hash, itemCount, messageCount, openTurn, endsInText, addedTools };
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
