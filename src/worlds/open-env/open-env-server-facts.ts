import { request } from "undici";
import { z } from "zod";
import { UsageError, describeError } from "../../errors.ts";
import { plainReply, readReplyText } from "../../http/read-reply.ts";
import type { ObjectSchema } from "../../environment/standard-schema.ts";
import { shownUrl } from "../../secrets/find-secrets.ts";
import type { OpenEnvPlace } from "./open-env-session.ts";
import { parseExactJson } from "../../json/exact-json.ts";

/** A server's description of itself. */
export interface OpenEnvServerFacts {
  readonly name: string;
  readonly description: string;
  /** The schema of an action. */
  readonly actionSchema: ObjectSchema;
  /** The sizes of the splits with listed tasks. Absent if the server lists none. */
  readonly splits?: Readonly<Record<string, number>>;
}

const metadataSchema = z.object({ name: z.string(), description: z.string().nullish() });
const schemaSchema = z.object({ action: z.record(z.string(), z.unknown()) });
const splitsSchema = z.array(z.object({ name: z.string() }));
const countSchema = z.object({ num_tasks: z.int().min(0) });

/**
 * Reads an OpenEnv server's description of itself.
 * @throws UsageError if the server cannot be reached, or if it is not an OpenEnv server.
 */
export async function readServerFacts(
  place: OpenEnvPlace,
  timeoutMs: number,
): Promise<OpenEnvServerFacts> {
  if (!/^https?:$/.test(URL.canParse(place.url) ? new URL(place.url).protocol : "")) {
    throw new UsageError(
      `Cannot use an OpenEnv server at ${shownUrl(place.url)}: expected an address such as http://127.0.0.1:8000`,
    );
  }
  const ask = async <Value>(path: string, schema: z.ZodType<Value>, body?: object) =>
    await askServer({ ...place, timeoutMs }, { path, schema, ...(body && { body }) });
  const metadata = await ask("metadata", metadataSchema);
  const schemas = await ask("schema", schemaSchema);
  if (metadata === undefined || schemas === undefined) {
    throw new UsageError(
      `Cannot use ${shownUrl(place.url)}: it has no /metadata and /schema, expected an OpenEnv server`,
    );
  }
  const splits = await readSplits(ask, metadata.name);
  return {
    name: metadata.name,
    description: metadata.description ?? "",
    actionSchema: { ...schemas.action, type: "object" },
    ...(splits && { splits }),
  };
}

type Ask = <Value>(
  path: string,
  schema: z.ZodType<Value>,
  body?: object,
) => Promise<Value | undefined>;

async function readSplits(
  ask: Ask,
  name: string,
): Promise<Readonly<Record<string, number>> | undefined> {
  const [listed = name] = (await ask("list_environments", z.array(z.string()))) ?? [];
  const path = encodeURIComponent(listed);
  const splits = await ask(`${path}/splits`, splitsSchema);
  const sizes: Record<string, number> = {};
  for (const { name: split } of splits ?? []) {
    const count = await ask(`${path}/num_tasks`, countSchema, { split });
    if (count !== undefined && count.num_tasks > 0) sizes[split] = count.num_tasks;
  }
  return Object.keys(sizes).length === 0 ? undefined : sizes;
}

/**
 * Requests a path from the server.
 * @returns `undefined` if the server does not have the path.
 */
async function askServer<Value>(
  { url, headers, timeoutMs }: OpenEnvPlace & { readonly timeoutMs: number },
  {
    path,
    schema,
    body,
  }: { readonly path: string; readonly schema: z.ZodType<Value>; readonly body?: object },
): Promise<Value | undefined> {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/${path}`;
  try {
    const {
      statusCode,
      headers: replyHeaders,
      body: answer,
    } = await request(address, {
      method: body === undefined ? "GET" : "POST",
      headers: { ...plainReply, ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    if (statusCode === 404 || statusCode === 405 || statusCode === 501) {
      await answer.dump();
      return undefined;
    }
    if (statusCode !== 200) {
      await answer.dump();
      const hint =
        statusCode === 401 || statusCode === 403 ? ", expected headers that it accepts" : "";
      throw new Error(`HTTP ${statusCode}${hint}`);
    }
    return schema.parse(
      parseExactJson(await readReplyText({ headers: replyHeaders, body: answer })),
    );
  } catch (error) {
    const why = error instanceof z.ZodError ? "it answered something else" : describeError(error);
    throw new UsageError(`Cannot use OpenEnv server ${shownUrl(address.href)}: ${why}`, {
      cause: error,
    });
  }
}
