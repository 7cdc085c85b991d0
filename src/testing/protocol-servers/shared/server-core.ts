import type { Clock } from "../../../async/clock.ts";
import { systemClock } from "../../../async/clock.ts";
import { createSeededPolicy } from "../../policies/seeded-policy.ts";
import type { ServerFault, ServerFaults } from "../server-fault.ts";
import type { ServerPolicy } from "../../policies/server-policy.ts";
import type { ConditionWatch } from "./condition-watch.ts";
import { createConditionWatch } from "./condition-watch.ts";
import type { FaultQueue } from "./fault-queue.ts";
import { createFaultQueue } from "./fault-queue.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { readExchange } from "./http-exchange.ts";
import { listen } from "./listen.ts";
import type { PrefixCache } from "./prefix-cache.ts";
import { createPrefixCache } from "./prefix-cache.ts";
import type { RecordedRequest, RequestLog } from "./request-log.ts";
import { createRequestLog } from "./request-log.ts";
import type { FinishReason } from "./request-scheduler.ts";
import { RequestScheduler } from "./request-scheduler.ts";
import type { SequenceRequest } from "./sequence-request.ts";

/** Settings that every test server has. */
export interface TestServerOptions {
  /** The policy to sample from. Default `createSeededPolicy()`. */
  readonly policy?: ServerPolicy;
  /** The port. Default 0: any free port. */
  readonly port?: number;
  /** The faults of requests. Default: none. */
  readonly faults?: ServerFaults;
  /** The bearer token that requests must have. Default: requests need none. */
  readonly apiKey?: string;
  /** Maximum number of tokens in prompt and output together. Default 131 072. */
  readonly contextLength?: number;
  /** Maximum number of sequences that are sampled at a time. Further ones wait. Default 4 096. */
  readonly maxRunning?: number;
  /** The time for one token, in milliseconds. Default 0. */
  readonly tokenLatencyMs?: number;
  /** The number of tokens per round of the event loop, if tokens take no time. Default 64. */
  readonly tokensPerTick?: number;
  /** The time until the server notices a disconnected client, in milliseconds. Default 0. */
  readonly disconnectPollMs?: number;
  /** Returns the text of ids. Default: `<7><8>` for the ids 7 and 8. */
  readonly detokenize?: (ids: readonly number[]) => string;
  /** The number of requests in `requests`; older ones are removed. Default 1 000. */
  readonly recordLimit?: number;
  /** The function that waits. Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
}

/** The server's counters. JSON-able. */
export interface ServerStats {
  /** The number of HTTP requests for sampling, including refused ones. */
  readonly generateCount: number;
  readonly abortCount: number;
  readonly heldCount: number;
  readonly waitingCount: number;
  readonly runningCount: number;
  /** The number of ended sequences, by the reason of their end. */
  readonly finished: Readonly<Record<FinishReason["type"], number>>;
  readonly sampledTokenCount: number;
}

/** A running test server. `Controls` are the functions of its kind. */
export interface TestServer<Controls = unknown> extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly stats: ServerStats;
  /** The latest requests, in order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** Messages of the policy: unexpected requests, and turns that did not end. */
  readonly problems: readonly string[];
  /** Adds faults for the next requests. Works only if the faults are a list. */
  addFaults(...faults: readonly (ServerFault | undefined)[]): void;
  /** Resolves when a condition on the server holds. Checks it after each change of a request. */
  until(condition: (server: TestServer<Controls> & Controls) => boolean): Promise<void>;
  /** Drops all connections and stops listening. */
  close(): Promise<void>;
}

/** The parts of every test server. */
export interface ServerCore<Request extends SequenceRequest> {
  readonly scheduler: RequestScheduler<Request>;
  readonly problems: readonly string[];
  readonly watch: ConditionWatch;
  readonly log: RequestLog;
  readonly faults: FaultQueue;
  readonly cache: PrefixCache;
  readonly apiKey: string | undefined;
  readonly contextLength: number;
  readonly disconnectPollMs: number;
  readonly detokenize: (ids: readonly number[]) => string;
  readonly counts: { generate: number; abort: number };
  readonly stats: () => ServerStats;
}

/** Creates the parts of a server. */
export function createServerCore<Request extends SequenceRequest>(
  options: TestServerOptions,
  { weightVersion, stopsBeforeBudget }: { weightVersion: () => string; stopsBeforeBudget: boolean },
): ServerCore<Request> {
  const problems: string[] = [];
  const watch = createConditionWatch();
  const log = createRequestLog(options.recordLimit ?? 1_000);
  const counts = { generate: 0, abort: 0 };
  const scheduler = new RequestScheduler<Request>({
    policy: options.policy ?? createSeededPolicy(),
    maxRunning: options.maxRunning ?? 4_096,
    tokenLatencyMs: options.tokenLatencyMs ?? 0,
    tokensPerTick: options.tokensPerTick ?? 64,
    stopsBeforeBudget,
    sleep: options.sleep ?? systemClock.sleep,
    weightVersion,
    onComplaint: (message) => problems.push(message),
    onChange: () => watch.notify(),
  });
  return {
    scheduler,
    problems,
    watch,
    log,
    counts,
    faults: createFaultQueue(options.faults ?? []),
    cache: createPrefixCache(),
    apiKey: options.apiKey,
    contextLength: options.contextLength ?? 131_072,
    disconnectPollMs: options.disconnectPollMs ?? 0,
    detokenize: options.detokenize ?? ((ids) => ids.map((id) => `<${id}>`).join("")),
    stats: () => ({
      generateCount: counts.generate,
      abortCount: counts.abort,
      heldCount: scheduler.heldCount,
      waitingCount: scheduler.waitingCount,
      runningCount: scheduler.runningCount,
      finished: { ...log.finished },
      sampledTokenCount: log.sampledTokenCount,
    }),
  };
}

/** Starts the server. `route` answers an exchange. */
export async function startServing<Request extends SequenceRequest, Controls extends object>(
  core: ServerCore<Request>,
  {
    port = 0,
    route,
    controls,
  }: {
    port?: number | undefined;
    route: (exchange: HttpExchange) => Promise<void>;
    controls: Controls;
  },
): Promise<TestServer<Controls> & Controls> {
  const { scheduler, log, problems, faults, watch } = core;
  const http = await listen(port, (request, response) => {
    void readExchange(request, response)
      .then(route)
      .then(() => watch.notify())
      .catch((error: unknown) => {
        // The client disconnected while it sent its request.
        if (!request.destroyed) throw error;
      });
  });
  const close = async (): Promise<void> => {
    await http.close();
    scheduler.continue();
    scheduler.abortAll();
  };
  const running: TestServer<Controls> = {
    url: http.url,
    port: http.port,
    get stats() {
      return core.stats();
    },
    requests: log.requests,
    problems,
    addFaults: (...more) => faults.add(more),
    until: (condition) => watch.until(() => condition(server)),
    close,
    [Symbol.asyncDispose]: close,
  };
  const server = Object.assign(running, controls);
  return server;
}
