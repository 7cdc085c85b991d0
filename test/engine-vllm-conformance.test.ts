import { describe, test } from "vitest";
import { createVllmEngine } from "../src/engine/vllm/vllm-engine.ts";
import type {
  EngineHarness,
  EngineScenario,
  EngineUnderTest,
  ServerFault,
  VllmTestServerOptions,
} from "../src/testing/index.ts";
import {
  registerEngineConformance,
  scriptedPolicy,
  startVllmTestServer,
} from "../src/testing/index.ts";

const api = {
  test,
  skip: (name: string, reason: string) => test.skip(`${name} (${reason})`),
};

/** vLLM's own words for each failure. */
const FAILURES = {
  "engine/overloaded": {
    kind: "status",
    status: 503,
    body: { error: "The model is currently scaling. Please try again later." },
  },
  "engine/server-error": {
    kind: "status",
    status: 500,
    body: {
      error: { message: "EngineCore", type: "InternalServerError", param: null, code: 500 },
    },
  },
  "engine/unauthorized": { kind: "status", status: 401, body: { error: "Unauthorized" } },
  "engine/prompt-too-long": {
    kind: "status",
    status: 400,
    body: {
      error: {
        message:
          "The decoder prompt (length 9) is longer than the maximum model length of 8. Make sure " +
          "that `max_model_len` is no smaller than the number of text tokens.",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
    },
  },
  "engine/bad-request": {
    kind: "status",
    status: 400,
    body: {
      error: {
        message: "temperature must be in [0, 2], got 9.",
        type: "BadRequestError",
        param: "temperature",
        code: 400,
      },
    },
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

async function start(
  scenario: EngineScenario,
  options: VllmTestServerOptions,
): Promise<EngineUnderTest> {
  const turns = "turns" in scenario ? scenario.turns : {};
  const server = await startVllmTestServer({
    ...options,
    policy: scriptedPolicy(turns),
    faults: (_request, requestIndex) => toFault(scenario, requestIndex),
  });
  const engine = createVllmEngine({
    url: server.url,
    retry: { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 },
    resume: { delayMs: 1 },
  });
  if (scenario.kind === "unreachable") await server.close();
  return {
    engine,
    seenPrompts: () => server.requests.map(({ inputIds }) => inputIds),
    untilSeen: (count) => server.until(({ requests }) => requests.length >= count),
    async [Symbol.asyncDispose]() {
      await engine.close();
      await server.close();
    },
  };
}

const HARNESSES: readonly EngineHarness[] = [
  { name: "vllm, ids only,", start: (scenario) => start(scenario, {}) },
  { name: "vllm, completions,", start: (scenario) => start(scenario, { apis: ["completions"] }) },
  {
    name: "vllm, in development mode,",
    start: (scenario) => start(scenario, { isDevelopment: true }),
  },
];

describe.each(HARNESSES)("$name", (harness) => {
  registerEngineConformance(harness, api);
});
