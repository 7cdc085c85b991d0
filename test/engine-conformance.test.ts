import { describe, test } from "vitest";
import { createSglangEngine } from "../src/engine/sglang/sglang-engine.ts";
import { RolloutError } from "../src/errors.ts";
import type {
  EngineHarness,
  EngineScenario,
  EngineUnderTest,
  ScriptedGeneration,
  ServerFault,
} from "../src/testing/index.ts";
import {
  registerEngineConformance,
  scriptedEngine,
  scriptedPolicy,
  startSglangTestRouter,
  startSglangTestServer,
} from "../src/testing/index.ts";

const api = {
  test,
  skip: (name: string, reason: string) => test.skip(`${name} (${reason})`),
};

/** SGLang's own words for each failure. */
const FAILURES = {
  "engine/overloaded": {
    kind: "status",
    status: 503,
    body: { object: "error", message: "The request queue is full.", type: "503", code: 503 },
  },
  "engine/server-error": { kind: "status", status: 500, body: "Internal Server Error" },
  "engine/unauthorized": { kind: "status", status: 401, body: { error: "Unauthorized" } },
  "engine/prompt-too-long": {
    kind: "status",
    status: 400,
    body: {
      error: {
        message: "The input (9 tokens) is longer than the model's context length (8 tokens).",
      },
    },
  },
  "engine/bad-request": {
    kind: "status",
    status: 400,
    body: { error: { message: "temperature must be non-negative, got -1." } },
  },
} as const satisfies Record<string, ServerFault>;

function toFault(scenario: EngineScenario, requestIndex: number): ServerFault | undefined {
  switch (scenario.kind) {
    case "fails":
      return FAILURES[scenario.code];
    case "hangs":
      return { kind: "hang" };
    case "interrupts":
      return requestIndex === 0 ? { kind: "abort-after", tokens: scenario.afterTokens } : undefined;
    default:
      return undefined;
  }
}

async function startSglang(
  scenario: EngineScenario,
  { behindRouter }: { behindRouter: boolean },
): Promise<EngineUnderTest> {
  const turns = "turns" in scenario ? scenario.turns : {};
  const server = await startSglangTestServer({
    policy: scriptedPolicy(turns),
    faults: (_request, requestIndex) => toFault(scenario, requestIndex),
  });
  const router = behindRouter
    ? await startSglangTestRouter({ workers: [server.url], retryDelayMs: 1 })
    : undefined;
  const engine = createSglangEngine({
    url: router?.url ?? server.url,
    mode: behindRouter ? "router" : "direct",
    retry: { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 },
    resume: { delayMs: 1 },
  });
  if (scenario.kind === "unreachable") {
    await router?.close();
    await server.close();
  }
  return {
    engine,
    seenPrompts: () => server.requests.map(({ inputIds }) => inputIds),
    untilSeen: (count) => server.until(({ requests }) => requests.length >= count),
    async [Symbol.asyncDispose]() {
      await engine.close();
      await router?.close();
      await server.close();
    },
  };
}

function toScript(
  scenario: EngineScenario,
): Readonly<Record<string, readonly ScriptedGeneration[]>> {
  switch (scenario.kind) {
    case "plays":
      return scenario.turns;
    case "fails": {
      const { code } = scenario;
      const retryable = code === "engine/overloaded" || code === "engine/server-error";
      return { "session-0": [{ error: new RolloutError(code, "scripted", { retryable }) }] };
    }
    default:
      return { "session-0": [{ hangs: true }] };
  }
}

async function startScripted(scenario: EngineScenario): Promise<EngineUnderTest> {
  const engine = scriptedEngine(toScript(scenario));
  return {
    engine,
    seenPrompts: () => engine.requests.map(({ promptIds }) => promptIds),
    untilSeen: async () => undefined,
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

const HARNESSES: readonly EngineHarness[] = [
  { name: "sglang, direct,", start: (scenario) => startSglang(scenario, { behindRouter: false }) },
  {
    name: "sglang, behind a router,",
    start: (scenario) => startSglang(scenario, { behindRouter: true }),
  },
  {
    name: "the scripted engine",
    start: startScripted,
    skip: {
      "resumes a turn that the engine interrupted, keeping what was sampled":
        "nothing interrupts a script",
      "fails as `engine/unreachable`, retryable, where nothing listens": "it lives in this process",
    },
  },
];

describe.each(HARNESSES)("$name", (harness) => {
  registerEngineConformance(harness, api);
});
