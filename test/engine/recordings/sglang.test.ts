import { isObject } from "../../../src/values/is-object.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SglangTestServer } from "../../../src/testing/index.ts";
import { startSglangTestServer } from "../../../src/testing/index.ts";
import type { RecordedTurn } from "./recorded-policy.ts";
import { recordedPolicy } from "./recorded-policy.ts";
import type { Recording } from "./recording.ts";
import { normalise, readRecordings, replay, toCases, toEvents, toValue } from "./recording.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** Values that differ between servers: generated names, texts of ids, caches. */
const VOLATILE = new Set([
  "id",
  "text",
  "created",
  "root",
  "cached_tokens",
  "cached_tokens_details",
]);

/** Durations, which our server does not report. */
const TIMES = new Set([
  "storage_prefetch_wait",
  "storage_staging_wait",
  "forward_entry_time",
  "prefill_finished_time",
  "queue_time",
  "e2e_latency",
  "request_received_ts",
  "first_token_latency",
  "api_server_dispatch_finish_ts",
  "request_finished_ts",
  "decode_throughput",
  "response_sent_to_client_ts",
]);

/** Values that a server without a model cannot report; the long pages have tests of their own. */
const LEFT_OUT = new Set([
  "get_metrics",
  "get_model_info",
  "get_get_model_info",
  "get_server_info",
  "get_get_server_info",
]);

const recordings = readRecordings("sglang-0.5.23");

describe("recorded answers of sglang-0.5.23", () => {
  const policy = recordedPolicy();
  let server: SglangTestServer;
  beforeAll(async () => {
    server = await startSglangTestServer({
      release: "0.5.23",
      policy,
      contextLength: 4_096,
      vocabularySize: 2_944,
      modelPath: "storefront-2m",
      eosTokenId: 2_939,
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
    const isUpdated = name === "after-weight-version" || name.startsWith("duplicate");
    server.setWeightVersion(isUpdated ? "v2" : "default");
    const first = name === "duplicate-rid-second" ? await startFirst(recording) : undefined;
    policy.play(readTurn(response.text));
    const pending = replay(server.url, recording);
    if (response.text.includes('"type":"abort"')) {
      await policy.reachedAbort;
      server.abortAll();
    }
    const answer = await pending;
    server.continue();
    server.abortAll();
    await first;
    expect({ status: answer.status, body: read(answer.text) }).toEqual({
      status: response.status,
      body: read(response.text),
    });
    expect(answer.contentType).toBe(response.headers["content-type"]);
  });

  /** A request of the same name that is being served. */
  async function startFirst(recording: Recording): Promise<unknown> {
    policy.play({ outputs: [{ ids: [1], logprobs: [-1] }], isAborted: true });
    const running = replay(server.url, recording);
    await policy.reachedAbort;
    return { running };
  }

  test.each(toCases(recordings.filter(({ name }) => name.endsWith("_info"))))(
    "%s: our test server's answer is a part of the recorded one",
    async (_, recording) => {
      const answer = await replay(server.url, recording);
      expect(answer.status).toBe(recording.response?.status);
      const ours = Object.entries(toValue(answer.text) as JsonObject);
      const real = toValue(recording.response?.text ?? "") as JsonObject;
      expect(ours.filter(([name]) => !(name in real)).map(([name]) => name)).toEqual([]);
      expect(ours.map(([name, value]) => [name, typeof value])).toEqual(
        ours.map(([name]) => [name, typeof real[name]]),
      );
    },
  );
});

test("an id outside the vocabulary ends our test server as it ended SGLang", async () => {
  const recording = recordings.find(({ name }) => name === "id-out-of-vocab");
  if (recording === undefined) throw new Error("There is no such recording");
  expect(recording.response).toBeUndefined();
  await using server = await startSglangTestServer({ vocabularySize: 2_944 });
  await expect(replay(server.url, recording)).rejects.toThrow("fetch failed");
  await expect(fetch(`${server.url}/health`)).rejects.toThrow("fetch failed");
});

function read(text: string): unknown {
  const value = text.startsWith("data: ") ? toEvents(text) : toValue(text);
  return withoutTimes(normalise(value, VOLATILE));
}

/** Neither times, nor the trace that follows an error's message. */
function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !TIMES.has(name))
      .map(([name, member]) => [
        name,
        name === "message" && typeof member === "string"
          ? member.split("\n\n")[0]
          : withoutTimes(member),
      ]),
  );
}

/** The samples and scores of an answer. */
function readTurn(text: string): RecordedTurn {
  const value = text.startsWith("data: ") ? toEvents(text).at(-2) : toValue(text);
  const replies = (Array.isArray(value) ? value : [value]) as JsonObject[];
  const metas = replies.flatMap(({ meta_info: meta }) => (isObject(meta) ? [meta] : []));
  const outputs = metas.map((meta, index) => {
    const reason = meta["finish_reason"] as JsonObject;
    const { matched } = reason;
    const ids = replies[index]?.["output_ids"] as number[];
    const entries = meta["output_token_logprobs"] as [number, number][] | undefined;
    return {
      ids,
      logprobs: entries?.map(([logprob]) => logprob) ?? ids.map(() => -1),
      ...(typeof matched === "string" && { matched }),
    };
  });
  const [meta] = metas;
  const scored = (meta?.["input_token_logprobs"] ?? []) as [number | null, number][];
  const promptLength = Number(meta?.["prompt_tokens"] ?? 0);
  const before = Array.from({ length: promptLength - scored.length }, () => -1);
  return {
    outputs,
    isAborted: (meta?.["finish_reason"] as JsonObject | undefined)?.["type"] === "abort",
    ...(scored.length !== 0 && {
      inputLogprobs: [...before, ...scored.map(([logprob]) => logprob ?? 0)],
    }),
  };
}
