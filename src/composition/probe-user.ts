import { UsageError, describeError } from "../errors.ts";
import type { Variables } from "./create-engine.ts";
import type { UserConfig } from "./config/user-config.ts";

/** How long the endpoint may take, in milliseconds; one that is slow is not refused for it. */
const timeoutMs = 10_000;

/**
 * Asks a user model's endpoint once whether it is there and takes the key, before anything is played on it.
 * The request is empty: every server that speaks the protocol refuses it, and samples nothing.
 *
 * @throws UsageError that names the flag to look at.
 */
export async function probeUser(
  config: UserConfig,
  { env, signal }: { readonly env: Variables; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  if (!("model" in config)) return;
  const { baseUrl, apiKeyEnv } = config.model;
  const key = apiKeyEnv === undefined ? undefined : env[apiKeyEnv];
  const address = `${baseUrl.replace(/\/+$/, "")}/chat/completions`;
  const refuse = (why: string, cause?: unknown): never => {
    throw new UsageError(`Cannot use --user-url ${baseUrl}: ${why}`, { cause });
  };
  let status: number;
  try {
    const { request } = await import("undici");
    const { statusCode, body } = await request(address, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      body: "{}",
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      ...(signal !== undefined && { signal }),
    });
    await body.dump();
    status = statusCode;
  } catch (error) {
    signal?.throwIfAborted();
    const { code } = error as { readonly code?: unknown };
    // What is slow or drops a connection may do better later, and each call is tried again.
    if (code !== "ECONNREFUSED" && code !== "ENOTFOUND") return;
    return refuse(
      `no connection (${describeError(error)}); is the server running, and the address right?`,
    );
  }
  if (status === 401 || status === 403) {
    const given = apiKeyEnv === undefined ? "no key was sent" : `the key in ${apiKeyEnv} was sent`;
    refuse(`HTTP ${status}, ${given}; --user-api-key-env names the variable that holds the key`);
  }
  if (status === 404 || status === 405) {
    refuse(`HTTP ${status} at ${address}; expected an address such as http://127.0.0.1:8000/v1`);
  }
}
