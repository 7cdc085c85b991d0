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
import { rememberExact } from "../../python/json/exact-json.ts";
import { parseStrictJson } from "../../json/strict-json.ts";

/** Larger bodies are refused, in bytes. */
const maxBodySize = 64 * 1024 * 1024;

/** Bodies that are being read at once may have so many bytes together. */
const mostBytesAtOnce = 16 * maxBodySize;

/** Keeps count of the bytes of all bodies that are being read. */
export class BodyBudget {
  #used = 0;

  /** @throws ClientError `overloaded` where there is no room for more. */
  take(size: number): void {
    if (this.#used + size > mostBytesAtOnce) {
      const message = "Too many large bodies are under way";
      throw new ClientError("overloaded", message, { retryAfterS: 1 });
    }
    this.#used += size;
  }

  give(size: number): void {
    this.#used -= size;
  }
}

/** How a body is read. */
interface BodyOptions {
  /** In bytes. Default 64 MiB. */
  readonly limit?: number;
  /** What bodies share that are read at once. Default nothing. */
  readonly budget?: BodyBudget;
  /** Where the request comes from, where it comes over a connection. */
  readonly incoming?: Readable | undefined;
}

/**
 * Reads a request's body and decodes it by its `Content-Encoding`. The limit holds for what is sent
 * and for what that expands to; the request's own word on its length is not trusted.
 *
 * @throws ClientError `too-large` beyond the limit, `overloaded` beyond the budget, `bad-encoding` for
 *   a content coding that is not read here, `invalid` for compressed bytes that are broken.
 */
export async function readBody(
  request: Request,
  { limit = maxBodySize, budget = new BodyBudget(), incoming }: BodyOptions = {},
): Promise<Uint8Array> {
  const tooLarge = (): ClientError =>
    new ClientError("too-large", `The body is larger than ${limit} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge();
  const codings = codingsOf(request);
  // A connection that is read as it is saves what making a web stream of it costs.
  const source = incoming?.iterator({ destroyOnReturn: false }) ?? request.body;
  if (source === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const sent = source as AsyncIterable<Uint8Array>;
  try {
    for await (const chunk of decodeBody(sent, { codings, limitBytes: limit })) {
      budget.take(chunk.byteLength);
      size += chunk.byteLength;
      if (size > limit) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof TooLargeError) throw tooLarge();
    throw toBodyError(error);
  } finally {
    budget.give(size);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
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
 * Reads a body that is a JSON object or nothing.
 *
 * @param options.isExact - Whether `exactOf()` is asked for the value. Default: what JavaScript would
 *   change is refused.
 * @throws ClientError `invalid` for another body.
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
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw new ClientError("invalid", "Cannot read the body: expected a JSON object");
}
