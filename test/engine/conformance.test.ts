import type { ColumnSpecs } from "../../src/columns/column-specs.ts";
import type { TestColumns } from "../../src/testing/protocol-servers/shared/column-model.ts";
import { describe, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import { RolloutError } from "../../src/errors.ts";
import type {
  EngineHarness,
  EngineScenario,
  EngineUnderTest,
  ScriptedGeneration,
  ServerFault,
  ServerFaults,
  ServerPolicy,
  VllmTestServerOptions,
} from "../../src/testing/index.ts";
import {
  malformTurn,
  registerEngineConformance,
  registerScoringConformance,
  createScriptedEngine,
  createScriptedPolicy,
  startLlamaCppTestServer,
  startSglangTestRouter,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import type { ServerFailures } from "./failures.ts";
import { llamaCppFailures, sglangFailures, vllmFailures } from "./failures.ts";
import type { MalformReply } from "./malformed-replies.ts";
import { stuckPolicy } from "./waiting-policies.ts";
import { malformLlamaCppReply, malformSglangReply, malformVllmReply } from "./malformed-replies.ts";

const retry = { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 };
const resume = { delayMs: 1 };

/** A test server with an engine that is connected to it. */
interface Served {
  readonly server: {
    readonly requests: readonly { readonly inputIds: readonly number[] }[];
    until(condition: (server: { readonly requests: readonly unknown[] }) => boolean): Promise<void>;
  };
  readonly engine: Engine;
  /** Stops all servers; a second call does nothing. */
  readonly stop: () => Promise<void>;
}

/** The replies of one kind of server to each fault. */
interface ServerWords {
  readonly failures: ServerFailures;
  readonly malform: MalformReply;
  /** Tokens per part of a stream, if parts contain only new tokens. */
  readonly countNew?: (reply: Record<string, unknown>) => number;
}

const sglangWords: ServerWords = { failures: sglangFailures, malform: malformSglangReply };
const sglangDeltaWords: ServerWords = {
  ...sglangWords,
  countNew: ({ output_ids: ids }) => (ids as readonly number[]).length,
};
const vllmWords: ServerWords = {
  failures: vllmFailures,
  malform: malformVllmReply,
  countNew({ choices }) {
    const [choice] = choices as readonly { readonly token_ids: readonly number[] }[];
    return choice?.token_ids.length ?? 0;
  },
};
const llamaCppWords: ServerWords = { failures: llamaCppFailures, malform: malformLlamaCppReply };

/** A harness that makes a server play the scenario, in the server's own form. */
function serverHarness(
  name: string,
  words: ServerWords,
  serve: (behaviour: { policy: ServerPolicy; faults: ServerFaults }) => Promise<Served>,
): EngineHarness {
  return {
    name,
    async start(scenario): Promise<EngineUnderTest> {
      const { server, engine, stop } = await serve({
        policy: toPolicy(scenario),
        faults: (_request, requestIndex) => toFault(scenario, words, requestIndex),
      });
      if (scenario.kind === "unreachable") await stop();
      return {
        engine,
        seenPrompts: () => server.requests.map(({ inputIds }) => inputIds),
        untilSeen: (count) => server.until(({ requests }) => requests.length >= count),
        async [Symbol.asyncDispose]() {
          await engine.close();
          await stop();
        },
      };
    },
  };
}

function toPolicy(scenario: EngineScenario): ServerPolicy {
  if (scenario.kind !== "stalls")
    return createScriptedPolicy("turns" in scenario ? scenario.turns : {});
  const { outputIds = [], logprobs = [] } = scenario.turns["session-0"]?.[0] ?? {};
  return stuckPolicy(
    ...outputIds
      .slice(0, scenario.afterTokens)
      .map((id, index) => ({ id, logprob: logprobs[index]! })),
  );
}

function toFault(
  scenario: EngineScenario,
  { failures, malform, countNew }: ServerWords,
  requestIndex: number,
): ServerFault | undefined {
  switch (scenario.kind) {
    case "fails":
      return failures[scenario.code];
    case "hangs":
      return { kind: "hang" };
    case "malforms": {
      const { token, replyCount } = scenario;
      if (requestIndex >= replyCount) return undefined;
      let streamedCount = 0;
      return {
        kind: "alter",
        alter(reply) {
          const index = 1 - streamedCount;
          streamedCount += countNew?.(reply) ?? 0;
          return malform(reply, token, index);
        },
      };
    }
    case "breaks": {
      const { afterTokens } = scenario;
      return requestIndex === 0 ? { kind: "reset", when: "within-reply", afterTokens } : undefined;
    }
    case "interrupts":
      return requestIndex === 0 ? { kind: "abort-after", tokens: scenario.afterTokens } : undefined;
    default:
      return undefined;
  }
}

/** Columns that every server returns without further sampling parameters. */
const columns: ColumnSpecs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 },
  topLogprobs: { count: 2 },
};
const { routedExperts } = columns;

function vllmHarness(name: string, options: VllmTestServerOptions): EngineHarness {
  const harness = serverHarness(name, vllmWords, async (behaviour) => {
    const shown = { columns: { ...(routedExperts && { routedExperts }) } };
    const server = await startVllmTestServer({ ...shown, ...options, ...behaviour });
    const engine = createVllmEngine({ url: server.url, retry, resume });
    return { server, engine, stop: () => server.close() };
  });
  return options.apis === undefined ? { ...harness, columns } : harness;
}

/** A harness with a server that returns columns. */
function sglangHarness(
  name: string,
  words: ServerWords,
  serve: (behaviour: {
    policy: ServerPolicy;
    faults: ServerFaults;
    columns: TestColumns;
  }) => Promise<Served>,
): EngineHarness {
  const served = { ...(routedExperts && { routedExperts }) };
  const harness = serverHarness(name, words, (behaviour) =>
    serve({ ...behaviour, columns: served }),
  );
  return { ...harness, columns };
}

const interruption =
  "resumes a turn that the engine interrupted, and keeps the sampled tokens" as const;

const unstreamed = "llama.cpp streams no token that ends within a character, so none is streamed";
const wholeTurns = "a script's turns come at once";

/** Engines that score, too. */
const SCORING_HARNESSES: readonly EngineHarness[] = [
  sglangHarness("sglang, direct,", sglangWords, async (behaviour) => {
    const server = await startSglangTestServer(behaviour);
    const engine = createSglangEngine({ url: server.url, mode: "direct", retry, resume });
    return { server, engine, stop: () => server.close() };
  }),
  sglangHarness("sglang, with incremental frames,", sglangDeltaWords, async (behaviour) => {
    const server = await startSglangTestServer({ ...behaviour, incrementalStreaming: true });
    const engine = createSglangEngine({ url: server.url, mode: "direct", retry, resume });
    return { server, engine, stop: () => server.close() };
  }),
  serverHarness("sglang, behind a router,", sglangWords, async (behaviour) => {
    const server = await startSglangTestServer(behaviour);
    const router = await startSglangTestRouter({ workers: [server.url], retryDelayMs: 1 });
    const engine = createSglangEngine({ url: router.url, mode: "router", retry, resume });
    const stop = async () => {
      await router.close();
      await server.close();
    };
    return { server, engine, stop };
  }),
  vllmHarness("vllm, ids only,", {}),
  vllmHarness("vllm, completions,", { apis: ["completions"] }),
  vllmHarness("vllm, in development mode,", { isDevelopment: true }),
];

const HARNESSES: readonly EngineHarness[] = [
  ...SCORING_HARNESSES,
  {
    ...serverHarness("llama.cpp", llamaCppWords, async (behaviour) => {
      const server = await startLlamaCppTestServer(behaviour);
      const engine = createLlamaCppEngine({ url: server.url, retry });
      return { server, engine, stop: () => server.close() };
    }),
    skip: {
      [interruption]: "llama.cpp does not interrupt; the tokens of a cancelled call are lost",
      "streams each token of a turn that the engine interrupted once, in order":
        "llama.cpp does not interrupt; the tokens of a cancelled call are lost",
      "continues after the streamed tokens if the connection breaks in mid-stream": unstreamed,
      "streams tokens before the turn ends, and none after it is cancelled": unstreamed,
      "cancels concurrent calls with the same request id one by one": unstreamed,
      "fails if an invalid token follows streamed tokens": unstreamed,
    },
  },
  {
    name: "the scripted engine",
    start: startScripted,
    skip: {
      [interruption]: "a script is never interrupted",
      "streams each token of a turn that the engine interrupted once, in order":
        "a script is never interrupted",
      "continues after the streamed tokens if the connection breaks in mid-stream":
        "it lives in this process",
      "streams tokens before the turn ends, and none after it is cancelled": wholeTurns,
      "cancels concurrent calls with the same request id one by one": wholeTurns,
      "fails if an invalid token follows streamed tokens": wholeTurns,
      "samples a turn again after it refused the reply, and records the refused one":
        "a script has each turn once",
      "fails as `engine/unreachable`, retryable, if no server listens": "it lives in this process",
    },
  },
];

async function startScripted(scenario: EngineScenario): Promise<EngineUnderTest> {
  const engine = createScriptedEngine(toScript(scenario));
  return {
    engine,
    seenPrompts: () => engine.requests.map(({ promptIds }) => [...promptIds]),
    untilSeen: async () => undefined,
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

function toScript(
  scenario: EngineScenario,
): Readonly<Record<string, readonly ScriptedGeneration[]>> {
  switch (scenario.kind) {
    case "plays":
      return scenario.turns;
    case "malforms": {
      const { turns, token } = scenario;
      return { "session-0": (turns["session-0"] ?? []).map((turn) => malformTurn(turn, token)) };
    }
    case "fails": {
      const { code } = scenario;
      const retryable = code === "engine/overloaded" || code === "engine/server-error";
      return { "session-0": [{ error: new RolloutError(code, "scripted", { retryable }) }] };
    }
    default:
      return { "session-0": [{ hangs: true }] };
  }
}

describe.each(HARNESSES)("$name", (harness) => {
  registerEngineConformance(harness, {
    test,
    skip: (name, reason) => test.skip(`${name} (${reason})`),
  });
});

describe.each(SCORING_HARNESSES)("$name", (harness) => {
  registerScoringConformance(harness, { test });
});
