import { UsageError, describeError } from "../errors.ts";
import type { Variables } from "./create-engine.ts";
import type { UserConfig } from "./config/user-config.ts";

/** The longest time for the endpoint's reply, in milliseconds. A slow endpoint is not refused. */
const timeoutMs = 10_000;

/**
 * Checks before a run that a user model's endpoint exists and accepts the key. Sends one empty
 * request, which every server of this protocol refuses without sampling.
 * @throws UsageError that names the flag to check.
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
    // A slow or interrupted reply is no reason to refuse the run, because each call is retried.
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
