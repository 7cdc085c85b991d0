import { UsageError, describeError } from "../errors.ts";
import type { Variables } from "./create-engine.ts";
import type { EngineConfig } from "./config/engine-config.ts";
import type { UserConfig } from "./config/user-config.ts";

/**
 * The longest wait for the endpoint's reply, in milliseconds. An endpoint that does not reply in time is not refused.
 */
const timeoutMs = 10_000;

interface ProbeOptions {
  readonly env: Variables;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Checks before a run that a user model's endpoint exists and accepts the key.
 * @throws UsageError that names the flag to check.
 */
export async function probeUser(config: UserConfig, options: ProbeOptions): Promise<void> {
  if (!("model" in config)) return;
  await probe(config.model, { url: "user-url", key: "user-api-key-env" }, options);
}

/**
 * Checks before a run that the endpoint of a chat engine exists and accepts the key. Other engines describe themselves.
 * @throws UsageError that names the flag to check.
 */
export async function probeEngine(config: EngineConfig, options: ProbeOptions): Promise<void> {
  if (config.kind !== "chat") return;
  const { apiKeyEnv, urls } = config;
  const address = { baseUrl: urls[0]!, ...(apiKeyEnv !== undefined && { apiKeyEnv }) };
  await probe(address, { url: "url", key: "api-key-env" }, options);
}

/**
 * Sends one empty request, which every server of this protocol refuses without sampling.
 * @param flags - The flags of the address and of the key's variable.
 */
async function probe(
  { baseUrl, apiKeyEnv }: { readonly baseUrl: string; readonly apiKeyEnv?: string },
  flags: { readonly url: string; readonly key: string },
  { env, signal }: ProbeOptions,
): Promise<void> {
  const key = apiKeyEnv === undefined ? undefined : env[apiKeyEnv];
  const address = `${baseUrl.replace(/\/+$/, "")}/chat/completions`;
  const refuse = (why: string, cause?: unknown): never => {
    throw new UsageError(`Cannot use --${flags.url} ${baseUrl}: ${why}`, { cause });
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
    refuse(`HTTP ${status}, ${given}; --${flags.key} names the variable that holds the key`);
  }
  if (status === 404 || status === 405) {
    refuse(`HTTP ${status} at ${address}; expected an address such as http://127.0.0.1:8000/v1`);
  }
}
