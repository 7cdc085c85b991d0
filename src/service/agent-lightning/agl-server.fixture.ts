import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { AglEvent, AglState } from "./agl-store.ts";

/** The fields that agent-lightning's store keeps for a rollout. */
export interface KeptRollout {
  readonly rollout_id: string;
  readonly input: unknown;
  readonly is_train: boolean;
  readonly config: { readonly timeout_seconds: number };
  status: {
    state: AglState;
    last_attempt_id: string | null;
    error_message: string | null;
    version: number;
  };
}

/** A listening store, with its contents. */
export interface AglServer extends AsyncDisposable {
  readonly url: string;
  readonly rollouts: Map<string, KeptRollout>;
  /** By rollout, `attempt` and the event. */
  readonly events: Map<string, (AglEvent & { readonly attempt: string })[]>;
  add(id: string, input: unknown, more?: { isTrain?: boolean; timeoutS?: number }): void;
  /**
   * Called before each call. A status becomes the answer; 0 breaks the connection after the work.
   */
  fault: (method: string, path: string) => number | undefined;
  /** Is asked before each page that is read; a text is answered in its place, as if all were well. */
  lie: (path: string) => string | undefined;
}

const next: Readonly<Record<AglState, readonly AglState[]>> = {
  queuing: ["running", "failed"],
  running: ["succeeded", "failed"],
  succeeded: [],
  failed: [],
};

/**
 * Starts a store as agent-lightning's server has one, so far as the bridge asks it.
 *
 * **Source:** microsoft/agent-lightning agentlightning/server/routes/{rollouts,events}.py, 1.0.2; held against
 * that server by `integrations/accept/agent_lightning.py`.
 */
export async function startAglServer(key = ""): Promise<AglServer> {
  const rollouts = new Map<string, KeptRollout>();
  const events: AglServer["events"] = new Map();
  const own = {
    rollouts,
    events,
    fault: (): number | undefined => undefined,
    lie: (): string | undefined => undefined,
    add(id: string, input: unknown, { isTrain = true, timeoutS = 3600 } = {}): void {
      const status: KeptRollout["status"] = {
        state: "queuing",
        last_attempt_id: null,
        error_message: null,
        version: 1,
      };
      const config = { timeout_seconds: timeoutS };
      rollouts.set(id, { rollout_id: id, input, is_train: isTrain, config, status });
      events.set(id, []);
    },
  } satisfies Partial<AglServer>;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "" } = request;
      const { pathname, searchParams } = new URL(request.url ?? "", "http://store");
      const isAllowed = key === "" || request.headers.authorization === `Bearer ${key}`;
      const faults = own as Pick<AglServer, "fault" | "lie">;
      const fault = faults.fault(method, pathname);
      const lie = method === "GET" ? faults.lie(pathname) : undefined;
      const body: unknown = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
      const [status, said] =
        fault !== undefined && fault > 0
          ? [fault, { detail: "as asked" }]
          : isAllowed
            ? answer({ method, pathname, searchParams, body })
            : [401, { detail: "Invalid or missing API key" }];
      if (fault === 0) request.socket.destroy();
      else if (lie !== undefined) response.writeHead(200).end(lie);
      else response.writeHead(status).end(JSON.stringify(said));
    });
  });

  function answer(call: {
    readonly method: string;
    readonly pathname: string;
    readonly searchParams: URLSearchParams;
    readonly body: unknown;
  }): [number, unknown] {
    const { method, pathname, searchParams, body } = call;
    if (pathname === "/api/rollouts" && method === "GET") {
      const states = searchParams.getAll("state_in");
      const found = [...rollouts.values()].filter(({ status }) => states.includes(status.state));
      return [200, found.slice(0, Number(searchParams.get("limit") ?? 500))];
    }
    const [, id = "", attempt] =
      /^\/api\/rollouts\/([^/]+)(?:\/attempt\/([^/]+)\/events)?$/.exec(pathname) ?? [];
    const rollout = rollouts.get(decodeURIComponent(id));
    if (rollout === undefined) return [404, { detail: `Rollout not found: ${id}` }];
    if (attempt !== undefined) {
      const event = { ...(body as AglEvent), attempt: decodeURIComponent(attempt) };
      events.get(rollout.rollout_id)!.push(event);
      return [200, event];
    }
    if (method === "GET") return [200, { rollout, attempts: [] }];
    const { status } = body as { readonly status: Partial<KeptRollout["status"]> };
    const from = rollout.status.state;
    if (status.state !== undefined && !next[from].includes(status.state)) {
      const detail = `Rollout ${id}: cannot transition ${from} -> ${status.state}`;
      return [409, { detail }];
    }
    rollout.status = { ...rollout.status, ...status, version: rollout.status.version + 1 };
    return [200, rollout];
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(own, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
