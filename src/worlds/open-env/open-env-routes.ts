import type { IncomingMessage } from "node:http";
import { z } from "zod";
import type { Environment } from "../../environment/environment.ts";
import { UsageError, describeError } from "../../errors.ts";
import {
  ContentCodingError,
  decodeBody,
  readContentCodings,
  TooLargeError,
} from "../../http/content-coding.ts";
import { requestPath } from "../../http/request-path.ts";
import { readVersion } from "../../composition/version.ts";
import { servedActionSchema } from "./served-episode.ts";
import { decodeText } from "../../text/decode-text.ts";
import { parseStrictJson } from "../../json/strict-json.ts";

/** A reply over plain HTTP. */
interface HttpAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Maximum size of a body, in bytes. */
const maxBodyBytes = 65_536;
/** Maximum number of tasks in one list. */
const mostTasks = 10_000;

/** An error that is answered with its own HTTP status. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const splitSchema = z.object({ split: z.string() });
const indexSchema = z.object({ split: z.string(), index: z.int() });
const rangeSchema = z.object({
  split: z.string(),
  start: z.int().min(0).nullish(),
  stop: z.int().min(0).nullish(),
});

/**
 * Answers requests of a client without a session: the description of the environment, and its
 * tasks.
 *
 * @throws UsageError for an unknown split or task, or an invalid body; HttpRefusal for a body that
 *   is too large or cannot be decoded.
 */
export async function answerHttp(
  environment: Environment,
  request: IncomingMessage,
): Promise<HttpAnswer> {
  const pathname = requestPath(request.url);
  if (pathname === undefined)
    throw new HttpRefusal(400, "Cannot read the request: expected a path");
  const found = request.method === "POST" ? undefined : await describe(environment, pathname);
  if (found !== undefined) return { status: 200, body: found };
  const [, name = "", what = "", ...more] = decodePath(pathname).split("/");
  const isOurs = name.toLowerCase() === environment.name.toLowerCase();
  if (isOurs && more.length === 0) {
    const body = await tasks(environment, what, request);
    if (body !== undefined) return { status: 200, body };
  }
  return { status: 404, body: { detail: "Not Found" } };
}

function decodePath(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    throw new HttpRefusal(400, "Cannot read the path: expected UTF-8 in % signs and two digits");
  }
}

async function describe(environment: Environment, pathname: string): Promise<unknown> {
  const { name, policyText, source } = environment;
  switch (pathname) {
    case "/health":
      return { status: "healthy" };
    case "/metadata":
      return { name, description: policyText || source, version: await readVersion() };
    case "/schema": {
      const observation = { type: "object", properties: { text: { type: "string" } } };
      const state = { type: "object", properties: { step_count: { type: "integer" } } };
      return { action: servedActionSchema, observation, state };
    }
    case "/list_environments":
      return [name];
    default:
      return undefined;
  }
}

async function tasks(
  environment: Environment,
  what: string,
  request: IncomingMessage,
): Promise<unknown> {
  const { name: env_name, splits } = environment;
  const shown = (split: string, index: number) => {
    const { id, instruction } = environment.task(split, index);
    return { id, split, index, instruction };
  };
  const list = (split: string, start: number, stop: number) =>
    Array.from({ length: Math.max(0, Math.min(stop, start + mostTasks) - start) }, (_, n) =>
      shown(split, start + n),
    );
  switch (what) {
    case "splits":
      return Object.keys(splits).map((name) => ({
        name,
        type: name === "train" || name === "test" ? name : "validation",
      }));
    case "num_tasks": {
      const { split } = await readBody(splitSchema, request);
      return { num_tasks: sizeOf(environment, split) };
    }
    case "tasks": {
      const { split } = await readBody(splitSchema, request);
      return { tasks: list(split, 0, sizeOf(environment, split)), env_name };
    }
    case "task": {
      const { split, index } = await readBody(indexSchema, request);
      return { task: shown(split, index) };
    }
    case "task_range": {
      const { split, start, stop } = await readBody(rangeSchema, request);
      const size = sizeOf(environment, split);
      return { tasks: list(split, start ?? 0, Math.min(stop ?? size, size)) };
    }
    default:
      return undefined;
  }
}

function sizeOf({ name, splits }: Environment, split: string): number {
  const size = splits[split];
  if (size !== undefined) return size;
  const known = Object.keys(splits).join(", ");
  throw new UsageError(`Cannot find split "${split}" of ${name}, expected one of ${known}`);
}

async function readText(request: IncomingMessage): Promise<string> {
  const tooLarge = (): HttpRefusal =>
    new HttpRefusal(413, `Cannot read the body: it is larger than ${maxBodyBytes} bytes`);
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    const codings = readContentCodings(request.headers["content-encoding"]);
    // Without this option, the end of the loop would close the connection before the answer is
    // sent.
    const sent = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
    for await (const piece of decodeBody(sent, { codings, limitBytes: maxBodyBytes })) {
      size += piece.byteLength;
      if (size > maxBodyBytes) throw tooLarge();
      pieces.push(piece);
    }
  } catch (error) {
    if (error instanceof TooLargeError) throw tooLarge();
    if (!(error instanceof ContentCodingError)) throw error;
    const status = error.kind === "unknown" ? 415 : 400;
    throw new HttpRefusal(status, `Cannot read the body: ${error.message}`);
  }
  try {
    return decodeText(Buffer.concat(pieces));
  } catch (cause) {
    throw new UsageError(`Cannot read the body: ${describeError(cause)}`, { cause });
  }
}

async function readBody<Value>(schema: z.ZodType<Value>, request: IncomingMessage): Promise<Value> {
  const text = await readText(request);
  try {
    return schema.parse(parseStrictJson(text));
  } catch (error) {
    throw new UsageError('Cannot read the body: expected {"split": …}', { cause: error });
  }
}
