import type * as aws4fetch from "aws4fetch";
import { UsageError } from "../../errors.ts";
import { shownUrl } from "../../secrets/find-secrets.ts";
import { hideEverywhere, Redactor } from "../../secrets/redactor.ts";
import { isMissing } from "../store/load-client.ts";
import type { SharedPlace } from "./shared-place.ts";

/** The longest time for a request, in milliseconds. */
const requestMs = 60_000;

/** The number of attempts at a request. */
const tries = 5;

/**
 * Opens a bucket of an S3-compatible store. Reads keys, region and endpoint from AWS's own
 * variables: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
 * `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`. Addresses buckets by path.
 * @throws UsageError if a variable or the package that signs requests is missing.
 */
export async function openSharedBucket(
  where: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SharedPlace> {
  const [, bucket = "", prefix = ""] = /^s3:\/\/([a-z0-9][\w.-]*)\/?(.*)$/.exec(where) ?? [];
  if (bucket === "") {
    throw new UsageError(
      `Cannot use --shared ${where}: expected s3://bucket or s3://bucket/prefix`,
    );
  }
  const accessKeyId = required(env, "AWS_ACCESS_KEY_ID");
  const secretAccessKey = required(env, "AWS_SECRET_ACCESS_KEY");
  const sessionToken = env["AWS_SESSION_TOKEN"];
  const region = env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1";
  const endpoint =
    env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"] ?? `https://s3.${region}.amazonaws.com`;
  const secrets = [
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? [] : [sessionToken]),
  ];
  hideEverywhere({ secrets, urls: [endpoint] });
  const { AwsClient } = await loadSigner();
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    region,
    service: "s3",
    retries: 0,
    ...(sessionToken !== undefined && { sessionToken }),
  });
  const base = `${endpoint.replace(/\/$/, "")}/${bucket}/${prefix === "" ? "" : `${prefix.replace(/\/$/, "")}/`}`;
  const ask = async (method: string, name: string, body?: Buffer): Promise<Response> => {
    for (let round = 1; ; round++) {
      try {
        const signal = AbortSignal.timeout(requestMs);
        const sent = body && new Uint8Array(body);
        const reply = await client.fetch(`${base}${name}`, {
          method,
          signal,
          ...(sent && { body: sent }),
        });
        if (reply.ok || reply.status === 404) return reply;
        // The complete text is redacted before it is cut, so that no part of a secret remains.
        const answer = new Redactor().text(await reply.text()).slice(0, 300);
        const error = new Error(
          `Cannot ${method} ${shownUrl(`${base}${name}`)}: ${reply.status} ${answer}`,
        );
        if (reply.status < 500 && reply.status !== 429) throw new UsageError(error.message);
        throw error;
      } catch (error) {
        if (error instanceof UsageError || round === tries) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** round));
      }
    }
  };
  return {
    shown: where,
    async write(name, bytes) {
      const reply = await ask("PUT", name, bytes);
      await reply.arrayBuffer();
      if (reply.status === 404) {
        throw new UsageError(`Cannot use --shared ${where}: there is no such bucket`);
      }
    },
    async read(name, most) {
      const reply = await ask("GET", name);
      if (reply.status === 404) {
        await reply.arrayBuffer();
        return undefined;
      }
      return await readAtMost(reply, most + 1);
    },
    async remove(name) {
      await (await ask("DELETE", name)).arrayBuffer();
    },
  };
}

async function loadSigner(): Promise<typeof aws4fetch> {
  try {
    return await import("aws4fetch");
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new UsageError(
      "Cannot use --shared s3://…: it needs the package aws4fetch, install it with `npm install aws4fetch`",
      { cause: error },
    );
  }
}

function required(env: Readonly<Record<string, string | undefined>>, name: string): string {
  const value = env[name];
  if (value !== undefined && value !== "") return value;
  throw new UsageError(`Cannot use --shared s3://…: the variable ${name} is not set`);
}

async function readAtMost(reply: Response, most: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of reply.body ?? []) {
    parts.push(part as Uint8Array);
    length += (part as Uint8Array).length;
    if (length >= most) break;
  }
  return Buffer.concat(parts).subarray(0, most);
}
