import { isObject } from "../../values/is-object.ts";
import type { Readable } from "node:stream";
import {
  ContentCodingError,
  decodeBody,
  readContentCodings,
  TooLargeError,
  type ContentCoding,
} from "../../http/content-coding.ts";
import { ClientError } from "../client-error.ts";
import { describeError } from "../../errors.ts";
import { decodeText } from "../../text/decode-text.ts";
import { rememberExact } from "../../json/exact-json.ts";
import { parseStrictJson } from "../../json/strict-json.ts";

/** Maximum size of a body, in bytes. */
const maxBodySize = 64 * 1024 * 1024;

/** Maximum total size of all bodies that are being read, in bytes. */
const maxConcurrentBytes = 16 * maxBodySize;

/** Counts the bytes of all bodies that are being read. */
export class BodyBudget {
  #used = 0;

  /**
   * Reserves bytes for a body.
   *
   * @throws ClientError `overloaded` if the total would exceed the maximum.
   */
  take(size: number): void {
    if (this.#used + size > maxConcurrentBytes) {
      const message = "Cannot read the body: too many large bodies are in progress";
      throw new ClientError("overloaded", message, { retryAfterS: 1 });
    }
    this.#used += size;
  }

  give(size: number): void {
    this.#used -= size;
  }
}

/** Limits for reading a body. */
interface BodyOptions {
  /** Maximum size in bytes. Default 64 MiB. */
  readonly limit?: number;
  /** The budget that concurrent bodies share. Default: none. */
  readonly budget?: BodyBudget;
  /** The socket's stream. Absent for a request from this process. */
  readonly incoming?: Readable | undefined;
}

/**
 * Reads a request's body and decodes it by its `Content-Encoding`. The limit applies to the sent
 * and to the decoded bytes. `Content-Length` alone is not trusted.
 *
 * @throws ClientError `too-large` beyond the limit, `overloaded` beyond the budget, `bad-encoding`
 *   for an unsupported content coding, `invalid` for broken compressed bytes.
 */
export async function readBody(request: Request, options: BodyOptions = {}): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bodyChunks(request, options)) chunks.push(chunk);
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/**
 * Yields the bytes of a request's body as they arrive, decoded as `readBody()` decodes them.
 *
 * @throws ClientError as `readBody()` does.
 */
export async function* bodyChunks(
  request: Request,
  { limit = maxBodySize, budget = new BodyBudget(), incoming }: BodyOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const tooLarge = (): ClientError =>
    new ClientError("too-large", `The body is larger than ${limit} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge();
  const codings = codingsOf(request);
  // Reading the socket directly avoids the cost of a web stream.
  const source = incoming?.iterator({ destroyOnReturn: false }) ?? request.body;
  if (source === null) return;
  let size = 0;
  const sent = source as AsyncIterable<Uint8Array>;
  try {
    for await (const chunk of decodeBody(sent, { codings, limitBytes: limit })) {
      budget.take(chunk.byteLength);
      size += chunk.byteLength;
      if (size > limit) throw tooLarge();
      yield chunk;
    }
  } catch (error) {
    if (error instanceof TooLargeError) throw tooLarge();
    throw toBodyError(error);
  } finally {
    budget.give(size);
  }
}

function codingsOf({ headers }: Request): readonly ContentCoding[] {
  try {
    return readContentCodings(headers.get("content-encoding"));
  } catch (error) {
    throw toBodyError(error);
  }
}

function toBodyError(error: unknown): unknown {
  if (!(error instanceof ContentCodingError)) return error;
  const kind = error.kind === "unknown" ? "bad-encoding" : "invalid";
  return new ClientError(kind, `Cannot read the body: ${error.message}`, { cause: error });
}

/**
 * Reads a body that is a JSON object or empty.
 *
 * @param options.isExact - True if the caller passes the value to `exactOf()`. Default: a number
 *   that JavaScript would change is refused.
 * @throws ClientError `invalid` for any other body.
 */
export async function readJsonBody(
  request: Request,
  { isExact = false }: { readonly isExact?: boolean } = {},
): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await readBody(request, { limit: 1024 * 1024 });
  let value: unknown;
  try {
    const text = decodeText(bytes);
    if (text.trim() === "") return {};
    value = isExact ? JSON.parse(text) : parseStrictJson(text);
    if (isExact) rememberExact(value, text);
  } catch (error) {
    throw new ClientError(
      "invalid",
      `Cannot read the body: expected JSON (${describeError(error)})`,
      {
        cause: error,
      },
    );
  }
  if (isObject(value)) return value;
  throw new ClientError("invalid", "Cannot read the body: expected a JSON object");
}
