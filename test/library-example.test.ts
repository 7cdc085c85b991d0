import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type libraryDesk from "../examples/library-desk.ts";
import type * as rolling from "../examples/roll-out-library-desk.ts";
import type * as renewal from "../examples/renew-book.ts";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import type { Engine } from "../src/engine/engine.ts";
import { createLlamaCppEngine } from "../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createReferenceEngine } from "../src/engine/reference/index.ts";
import { createSglangEngine } from "../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../src/engine/vllm/vllm-engine.ts";
import { defineEnvironment } from "../src/environment/define-environment.ts";
import type { Action } from "../src/environment/environment.ts";
import { playActions } from "../src/environment/play-actions.ts";
import type { Episode } from "../src/episode/episode.ts";
import { defaultLimits } from "../src/episode/limits.ts";
import { playEpisode } from "../src/episode/play-episode.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import {
  startLlamaCppTestServer,
  startSglangTestServer,
  startVllmTestServer,
  createTextPolicy,
} from "../src/testing/index.ts";
import { episodeSamples } from "../src/run/folder/episode-samples.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { smallModelFolder } from "./support/small-model.ts";

const file = fileURLToPath(new URL("../examples/library-desk.ts", import.meta.url));
const compiled = fileURLToPath(new URL("../dist/examples/library-desk.js", import.meta.url));
const { default: environment } = (await import(compiled)) as { default: typeof libraryDesk };
const renderer = await createRenderer({ modelDir: smallModelFolder });
const { signal } = new AbortController();

function call(name: string, given: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;
}

/** A good agent's turns, after one mistake. */
const turns = [
  call("lend_book", { book: "Dune" }),
  call("return_book", { book: "Emma" }),
  call("lend_book", { book: "Dune", member: "Ann" }),
  "Here is Dune.",
];

async function play(engine: Engine): Promise<Episode> {
  const task = environment.task("test", 0);
  const agent = createToolCallingAgent({
    parser: findToolCallParser("qwen25"),
    toolUsePolicy: toolUsePolicies.many,
  });
  try {
    return await playEpisode(
      { task, rolloutId: `${task.id}#0`, groupId: task.id, sampleIndex: 0, seed: 0 },
      {
        environment,
        user: environment.user,
        engine,
        renderer,
        agent,
        sampling: { temperature: 1 },
        limits: { ...defaultLimits, maxTurns: 6, maxTokensPerTurn: 200, maxContextTokens: 2000 },
        now: () => 0,
      },
      { signal },
    );
  } finally {
    await engine.close();
  }
}

function expectSound(episode: Episode): void {
  for (const sample of episodeSamples(episode)) expect(verifySample(sample)).toEqual([]);
}

test("rollout() hands out its rows in five lines", async () => {
  const { rollOutLibraryDesk } = (await import(
    fileURLToPath(new URL("../dist/examples/roll-out-library-desk.js", import.meta.url))
  )) as typeof rolling;
  await using server = await startSglangTestServer({
    policy: await createTextPolicy(turns, { renderer }),
  });
  const rows = await rollOutLibraryDesk(server.url, smallModelFolder);
  expect(
    rows
      .map(({ rolloutId, reward }) => [rolloutId, reward])
      .toSorted(([a], [b]) => (a! < b! ? -1 : 1)),
  ).toEqual([
    ["library-desk/test/0#0", 1],
    ["library-desk/test/0#1", 1],
    ["library-desk/test/1#0", 0],
    ["library-desk/test/1#1", 0],
  ]);
  for (const row of rows) expect(verifySample(row)).toEqual([]);
});

test("the library example has at most 25 lines", async () => {
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(25);
  expect(environment.tools.map(({ name }) => name)).toEqual([
    "list_members",
    "list_loans",
    "lend_book",
    "return_book",
  ]);
});

describe("the library example plays", () => {
  test.each([
    ["SGLang", startSglangTestServer, createSglangEngine],
    ["vLLM", startVllmTestServer, createVllmEngine],
    ["llama.cpp", startLlamaCppTestServer, createLlamaCppEngine],
  ] as const)("on a test server of %s", async (_, start, connect) => {
    const policy = await createTextPolicy(turns, { renderer });
    await using server = await start({ policy, endTokenIds: renderer.stopTokenIds });
    const episode = await play(connect({ url: server.url }));
    expect(episode.failure).toBeUndefined();
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left", reward: 1 });
    expect(episode.turns.flatMap(({ steps }) => steps.map((step) => step.observation))).toEqual([
      "Error: member: Invalid input: expected string, received undefined (lend_book takes book, member)",
      "true",
      '{"Dune":"Ann"}',
      "",
    ]);
    expectSound(episode);
  });

  test("with the reference engine", async () => {
    const engine = await createReferenceEngine({ modelDir: smallModelFolder, threads: 0 });
    const episode = await play(engine);
    expect(episode.outcome).not.toBe("failed");
    expect(episode.reward).toBe(0);
    expectSound(episode);
  });

  test("and explains a missed goal", async () => {
    const policy = await createTextPolicy(["Good day!"], { renderer });
    await using server = await startSglangTestServer({ policy });
    const { reward, rewardDetails } = await play(createSglangEngine({ url: server.url }));
    expect(reward).toBe(0);
    expect(rewardDetails).toMatchObject({
      difference: {
        state: [
          { table: "loans", record: "Dune", field: "", wanted: "Ann" },
          { table: "loans", record: "Emma", field: "", got: "Ann" },
        ],
      },
    });
  });
});

test("a tool of its own is refused and renewed as the guide says", async () => {
  const { renewBook } = (await import(
    fileURLToPath(new URL("../dist/examples/renew-book.js", import.meta.url))
  )) as typeof renewal;
  const shelf = defineEnvironment({
    name: "renewals",
    tasks: [{ instruction: "Renew Emma." }],
    initialState: () => ({ loans: new Map([["Emma", { member: "Ann", renewals: 1 }]]) }),
    policy: "",
    tools: [renewBook],
    score: ({ loans }) => loans.get("Emma")?.renewals === 2,
  });
  const renew = (book: string): Action => ({
    type: "call",
    name: "renew_book",
    arguments: new Map([["book", book]]),
  });
  const { steps, score } = await playActions(
    shelf,
    {
      task: shelf.task("test", 0),
      user: shelf.user,
      actions: [renew("Dune"), renew("Emma"), renew("Emma")],
    },
    { signal },
  );
  expect(steps.map(({ observation }) => observation)).toEqual([
    "Error: nobody has Dune",
    '{"book":"Emma","renewals":2}',
    "Error: it was renewed twice",
  ]);
  expect(score.reward).toBe(1);
});
