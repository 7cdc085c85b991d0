import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LlamaCppTestServer } from "../../../src/testing/index.ts";
import { startLlamaCppTestServer } from "../../../src/testing/index.ts";
import type { RecordedTurn } from "./recorded-policy.ts";
import { recordedPolicy } from "./recorded-policy.ts";
import { normalise, readRecordings, replay, toCases, toEvents, toValue } from "./recording.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Values that differ between servers: texts of ids, other likely tokens, times, slots,
 * configuration.
 */
const VOLATILE = new Set([
  "content",
  "prompt",
  "token",
  "bytes",
  "top_logprobs",
  "timings",
  "id_slot",
  "model",
  "generation_settings",
  "has_new_line",
]);

/** A bias forces their tokens, and our server does not know the logprobs. */
const FORCED = new Set(["forced-id-scoring", "stop-token-only-in-client"]);

/** Pages of configuration and counters. */
const LEFT_OUT = new Set([
  "get_metrics",
  "get_lora-adapters",
  "get_slots",
  "slots-after-abort",
  "get_models",
  "get_v1_models",
  "get_props",
]);

const recordings = readRecordings("llama.cpp-xllamacpp-2026.10.11549");

describe("recorded answers of llama.cpp's server", () => {
  const policy = recordedPolicy();
  let server: LlamaCppTestServer;
  beforeAll(async () => {
    server = await startLlamaCppTestServer({
      release: "2026-10",
      policy,
      contextLength: 4_096,
      vocabularySize: 2_944,
      endTokenIds: [2_939],
      partialIds: [158],
      slotCount: 8,
    });
  });
  afterAll(() => server.close());

  test.each(
    toCases(
      recordings.filter(({ name, response }) => response !== undefined && !LEFT_OUT.has(name)),
    ),
  )("%s: our test server answers alike", async (name, recording) => {
    const { response } = recording;
    if (response === undefined) throw new Error("The recording has no response");
    policy.play(readTurn(response.text));
    const answer = await replay(server.url, recording);
    const compare = (text: string): unknown => read(text, FORCED.has(name));
    expect({ status: answer.status, body: compare(answer.text) }).toEqual({
      status: response.status,
      body: compare(response.text),
    });
    expect(answer.contentType).toBe(response.headers["content-type"]);
  });

  test("/props reports a part of the recorded properties, and no others", async () => {
    const recording = recordings.find(({ name }) => name === "get_props");
    if (recording?.response === undefined) throw new Error("There is no such recording");
    const ours = toValue((await replay(server.url, recording)).text) as JsonObject;
    const real = toValue(recording.response.text) as JsonObject;
    expect(Object.keys(ours).filter((name) => !(name in real))).toEqual([]);
    expect(ours["default_generation_settings"]).toHaveProperty("n_ctx", 4_096);
    expect(real["default_generation_settings"]).toHaveProperty("n_ctx", 4_096);
  });
});

function read(text: string, isForced: boolean): unknown {
  const volatileNames = isForced ? new Set([...VOLATILE, "logprob"]) : VOLATILE;
  const value = text.startsWith("data: ") ? toEvents(text) : toValue(text);
  return withoutParserWords(normalise(value, volatileNames));
}

/** The message of each JSON reader about an invalid text. */
function withoutParserWords(value: unknown): unknown {
  if (value === null || typeof value !== "object" || !("error" in value)) return value;
  const error = value.error as { message: string };
  const [message] = error.message.split(": syntax error");
  const isParser = error.message.includes("parse_error");
  return { error: { ...error, message: isParser ? message?.split(/: /)[0] : error.message } };
}

/** The samples of an answer. */
function readTurn(text: string): RecordedTurn {
  const value = toValue(text);
  const events = toEvents(text) as JsonObject[];
  const replies = (
    text.startsWith("data: ") ? [joinEvents(events)] : [value].flat()
  ) as JsonObject[];
  return {
    outputs: replies.flatMap((reply) => {
      const entries = (reply["completion_probabilities"] ?? []) as JsonObject[];
      const ids = (reply["tokens"] ?? entries.map(({ id }) => id)) as number[];
      const word = reply["stopping_word"];
      if (ids === undefined || ids.length === 0) return [];
      const logprobs = ids.map((_, index) => Number(entries[index]?.["logprob"] ?? -1));
      return [
        {
          ids,
          logprobs,
          ...(reply["stop_type"] === "word" && { matched: word as string }),
        },
      ];
    }),
  };
}

function joinEvents(events: readonly JsonObject[]): JsonObject {
  return {
    ...events.at(-1),
    tokens: events.flatMap(({ tokens }) => tokens as number[]),
    completion_probabilities: events.flatMap((event) => event["completion_probabilities"] ?? []),
  };
}
