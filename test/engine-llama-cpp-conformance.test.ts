import { describe, test } from "vitest";
import { createLlamaCppEngine } from "../src/engine/llama-cpp/llama-cpp-engine.ts";
import type {
  EngineHarness,
  EngineScenario,
  EngineUnderTest,
  ServerFault,
} from "../src/testing/index.ts";
import {
  registerEngineConformance,
  scriptedPolicy,
  startLlamaCppTestServer,
} from "../src/testing/index.ts";

function toError(code: number, type: string, message: string): ServerFault {
  return { kind: "status", status: code, body: { error: { code, message, type } } };
}

/** llama.cpp's own words for each failure. */
const FAILURES = {
  "engine/overloaded": toError(503, "unavailable_error", "Loading model"),
  "engine/server-error": toError(500, "server_error", "got exception: decode failed"),
  "engine/unauthorized": toError(401, "authentication_error", "Invalid API Key"),
  "engine/prompt-too-long": toError(
    400,
    "exceed_context_size_error",
    "request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
  ),
  "engine/bad-request": toError(400, "invalid_request_error", "Prompt contains invalid tokens"),
} as const;

function toFault(scenario: EngineScenario): ServerFault | undefined {
  switch (scenario.kind) {
    case "fails":
      return FAILURES[scenario.code];
    case "hangs":
      return { kind: "hang" };
    default:
      return undefined;
  }
}

async function start(scenario: EngineScenario): Promise<EngineUnderTest> {
  const turns = "turns" in scenario ? scenario.turns : {};
  const server = await startLlamaCppTestServer({
    policy: scriptedPolicy(turns),
    faults: () => toFault(scenario),
  });
  const engine = createLlamaCppEngine({
    url: server.url,
    retry: { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 },
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
  {
    name: "llama.cpp",
    start,
    skip: {
      "resumes a turn that the engine interrupted, keeping what was sampled":
        "llama.cpp does not interrupt; what it cancels is lost",
    },
  },
];

describe.each(HARNESSES)("$name", (harness) => {
  registerEngineConformance(harness, {
    test,
    skip: (name, reason) => test.skip(`${name} (${reason})`),
  });
});
