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
  /** Default 0: any free port. */
  readonly port?: number;
  /** Which requests fail how. Default: none. */
  readonly faults?: ServerFaults;
  /** If set, requests without it as bearer token are refused. */
  readonly apiKey?: string;
  /** Longest prompt and output together, in tokens. Default 131 072. */
  readonly contextLength?: number;
  /** Sequences sampled at a time; further ones wait. Default 4 096. */
  readonly maxRunning?: number;
  /** Time for one token, in milliseconds. Default 0. */
  readonly tokenLatencyMs?: number;
  /** The number of tokens per round of the event loop, if tokens take no time. Default 64. */
  readonly tokensPerTick?: number;
  /** The time until the server notices a disconnected client, in milliseconds. Default 0. */
  readonly disconnectPollMs?: number;
  /** Text of ids. Default: `<7><8>`. */
  readonly detokenize?: (ids: readonly number[]) => string;
  /** The number of latest requests in `requests`. Default 1 000. */
  readonly recordLimit?: number;
  /** Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
}

/** Counters. JSON-able. */
export interface ServerStats {
  /** HTTP requests for sampling, refused ones included. */
  readonly generateCount: number;
  readonly abortCount: number;
  readonly heldCount: number;
  readonly waitingCount: number;
  readonly runningCount: number;
  /** Sequences that ended, by how. */
  readonly finished: Readonly<Record<FinishReason["type"], number>>;
  readonly sampledTokenCount: number;
}

/** A running test server, with what can be done to this kind of it besides. */
export interface TestServer<Controls = unknown> extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly stats: ServerStats;
  /** The latest requests, in order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** The policy's complaints: unexpected requests, and turns that did not end. */
  readonly problems: readonly string[];
  /** Adds faults for the next requests. Works only if the faults are a list. */
  addFaults(...faults: readonly (ServerFault | undefined)[]): void;
  /** Waits until a condition on the server holds; looked at whenever something happens to a request. */
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

/** Creates the parts, without running requests. */
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

/** Listens. `route` answers an exchange, and may take its time. */
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
        // The client went away in the middle of its own request.
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
