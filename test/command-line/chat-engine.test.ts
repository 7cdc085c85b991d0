import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { evaluate, rollout } from "../../src/index.ts";
import {
  startChatCompletionsServer,
  type ChatCompletionsServer,
  type ScriptedAnswer,
} from "../../src/engine/chat/chat-completions-server.fixture.ts";
import { callCli } from "../support/call-cli.ts";

/** A malformed call, and words until the user leaves. */
const answers: readonly ScriptedAnswer[] = [
  { content: null, calls: [["find_customer", "{broken"]], reasoning: "Who is it?" },
  { content: "Anything else?" },
  { content: "Goodbye." },
];

let dir = "";
let server: ChatCompletionsServer;
const run = (): string => path.join(dir, "run");
const engine = (url = server.baseUrl): readonly string[] =>
  `--env storefront --engine chat --url ${url} --served-model big --tasks 0 --quiet`.split(" ");

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-chat-"));
  server = await startChatCompletionsServer(answers);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

test("`eval` measures a model over Chat Completions, and every command reads what it can", async () => {
  const key = "sk-canary-4711";
  const { stdout } = await callCli(
    ["eval", ...engine(), "--api-key-env", "CHAT_TEST_KEY", "--out", run()],
    { env: { CHAT_TEST_KEY: key } },
  );
  expect(stdout).toContain("attempts        1 scored of 1 planned");
  expect(stdout).toMatch(/tokens {10}1\d sampled, [23]0 of prompts, 0 of the user's model/);
  expect(server.requests[0]?.headers["authorization"]).toBe(`Bearer ${key}`);
  for (const name of ["run.json", "episodes.jsonl", "events.jsonl", "recording.jsonl"]) {
    expect(await readFile(path.join(run(), name), "utf8"), name).not.toContain(key);
  }
  expect(await readFile(path.join(run(), "samples.jsonl"), "utf8")).toBe("");
  const verified = JSON.parse((await callCli(["verify", run()])).stdout) as object;
  expect(verified).toMatchObject({ samples: 0, episodes: 1, isFinished: true, violations: [] });
  expect((await callCli(["replay", run()])).stdout).toBe("1 identical, 0 differ\n");
  expect((await callCli(["report", run()])).stdout).toContain("attempts        1 scored of 1");
  expect((await callCli(["compare", run(), run()])).stdout).toContain("the same on 1");
  const shown = (await callCli(["show", run(), "0#0"])).stdout;
  expect(shown).toContain("  find_customer {broken\n");
  expect(shown).toContain("Error: the tool call is not valid JSON");
  const table = path.join(dir, "run.csv");
  expect(await callCli(["export", run(), "--to", "csv", "--out", table])).toMatchObject({
    status: 0,
    stderr: "",
  });
  expect(await readFile(table, "utf8")).toContain("storefront/test/0#0");
  // The run is finished: nothing is asked again.
  const { length } = server.requests;
  await callCli(["eval", "--resume", "--out", run(), "--quiet"]);
  expect(server.requests).toHaveLength(length);
});

test.each([
  [["export", "--to", "slime"], "export"],
  [["export", "--to", "parquet"], "export"],
  [["fork", "0#0", "--turn", "0"], "fork an episode of"],
  [["score", "--teacher", "http://127.0.0.1:1"], "score"],
  [["doctor", "--trainer-logprobs", "none.jsonl"], undefined],
] as const)("`%j` refuses a run without rows", async ([command, ...flags], doing) => {
  const { status, stderr } = await callCli([command, run(), ...flags]);
  expect(status).toBe(2);
  if (doing === undefined) return;
  expect(stderr).toBe(
    `turnwright: Cannot ${doing} ${run()}: it was played with an engine that returns messages without token ids, ` +
      "so it has no training rows; `report`, `show`, `view`, `compare` and `export --to csv` read its episodes\n",
  );
});

const needsIds = "with the engine chat: its server returns messages without token ids";

test.each<[readonly string[], string]>([
  [["rollout"], `Cannot play a rollout ${needsIds}, so there are no rows to train on; measure the`],
  [["eval", "--workers", "2"], `Cannot play with workers ${needsIds}, and workers hand over rows`],
  [["eval", "--model", "x"], "Cannot use --model with --engine chat: the server itself renders"],
  [["eval", "--columns", "topLogprobs=2"], "Cannot use --columns with --engine chat: side columns"],
  [["eval", "--format", "slime"], "Cannot use --format with --engine chat: there are no training"],
  [["eval", "--agent-command", "x"], "Cannot play an agent of your own with --engine chat: the"],
  [["eval", "--chat-body", "[]"], "Cannot read --chat-body []: expected a JSON object, such as"],
  [
    ["eval", "--chat-body", '{"metadata": {"api_key": "complaint-canary-47110815"}}'],
    "Cannot use metadata in --chat-body: it looks like a secret, and settings are written to",
  ],
  [["eval", "--chat-body", '{"n": 2}'], "Cannot add n to requests: the engine writes it itself"],
])("%j is refused with the reason", async ([command = "", ...flags], why) => {
  const { status, stderr } = await callCli([command, ...engine(), ...flags]);
  expect([status, stderr.slice(0, why.length + 12)]).toEqual([2, `turnwright: ${why}`]);
});

test("a server that refuses the key, or is not there, is named before the run", async () => {
  await using refusing = await startChatCompletionsServer([
    { status: 404, body: '{"error": {"message": "no model big"}}' },
  ]);
  const out = ["--out", path.join(dir, "refused")];
  const unknown = await callCli(["eval", ...engine(refusing.baseUrl), ...out]);
  expect(unknown.status).toBe(2);
  expect(unknown.stderr).toContain("from big: HTTP 404: no model big, expected the address of a");
  const gone = await callCli(["eval", ...engine("http://127.0.0.1:1/v1"), ...out]);
  expect(gone.stderr).toContain("Cannot use --url http://127.0.0.1:1/v1: no connection");
});

test("a program evaluates such a model too, and cannot roll it out", async () => {
  await using served = await startChatCompletionsServer(answers);
  const options = {
    environment: "storefront",
    engine: "chat",
    url: served.baseUrl,
    "served-model": "big",
    tasks: "0",
  } as const;
  const evaluation = await evaluate(options);
  expect(evaluation.episodes).toMatchObject({ finished: 1, scored: 1 });
  await expect(rollout(options)).rejects.toThrow(
    /Cannot play a rollout with the engine chat: .* `evaluate\(\)`/,
  );
});
