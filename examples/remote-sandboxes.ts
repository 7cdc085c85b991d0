import { RolloutError } from "turnwright";
import { defineSandboxes, type SandboxResult, type Sandboxes } from "turnwright/worlds";

/**
 * Creates sandboxes of an HTTP service, with the service's `token` and the `image` to start them from.
 */
export function remoteSandboxes(service: { url: string; token: string; image: string }): Sandboxes {
  const { url, token, image } = service;
  async function ask(method: string, path: string, signal: AbortSignal, body?: object) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const request = { method, headers, signal, ...(body && { body: JSON.stringify(body) }) };
    const reply = await fetch(new URL(path, url), request).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw outage(`Cannot reach ${url}`, cause);
    });
    const text = await reply.text();
    if (!reply.ok) throw outage(`${method} ${path} is answered ${reply.status}: ${text}`);
    return JSON.parse(text) as unknown;
  }
  return defineSandboxes({
    async open({ signal }) {
      // The sandbox ends by itself, even if this process dies.
      const opened = await ask("POST", "sandboxes", signal, { image, lifetimeMs: 3_600_000 });
      const path = `sandboxes/${(opened as { id: string }).id}`;
      return {
        id: path,
        // Omitted settings have the defaults of all sandboxes.
        run: async (command, { signal, timeoutMs = 30_000, maxOutputBytes = 32_768, ...rest }) => {
          const order = { command, timeoutMs, maxOutputBytes, ...rest };
          return (await ask("POST", `${path}/run`, signal, order)) as SandboxResult;
        },
        [Symbol.asyncDispose]: async () => {
          await ask("DELETE", path, AbortSignal.timeout(60_000));
        },
      };
    },
  });
}

/** No fault of the model's: the episode has failed, has no reward, and is played again. */
function outage(message: string, cause?: unknown): RolloutError {
  return new RolloutError("environment/unreachable", message, { cause, retryable: true });
}
