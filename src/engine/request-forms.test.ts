import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import type { SamplingConstraint } from "./engine.ts";
import { type BodyBytes, joinParts } from "./http/byte-parts.ts";
import { checkGenerateRequest } from "./in-process/check-request.ts";
import { encodeCompletionBody } from "./llama-cpp/completion-body.ts";
import type { PieceRequest } from "./http/piece-request.ts";
import { encodeGenerateBody as encodeSglangBody } from "./sglang/generate-body.ts";
import { encodeCompletionsBody, encodeGenerateBody } from "./vllm/request-body.ts";

type Json = Readonly<Record<string, unknown>>;

const schema = { type: "object" };
const tag = { type: "structural_tag", format: { type: "any_text" } };

function pieceWith(constraint?: SamplingConstraint): PieceRequest {
  const turn = { sampling: {}, stopTokenIds: [2], sessionId: "s" };
  return {
    requestId: "r",
    inputIds: [1, 2_000_000],
    maxNewTokens: 4,
    turn: constraint === undefined ? turn : { ...turn, constraint },
  };
}

const toJson = (body: BodyBytes): Json =>
  JSON.parse(Buffer.from(joinParts(body)).toString("utf8")) as Json;

const constraints = {
  "json-schema": { type: "json-schema", schema },
  regex: { type: "regex", pattern: "a+" },
  "structural-tag": { type: "structural-tag", tag },
} as const;

describe("constraints in each server's format", () => {
  test.each([
    ["json-schema", { json_schema: JSON.stringify(schema) }],
    ["regex", { regex: "a+" }],
    ["structural-tag", { structural_tag: JSON.stringify(tag) }],
  ] as const)("SGLang, %s", (type, expected) => {
    const body = toJson(
      encodeSglangBody(pieceWith(constraints[type]), { wireId: "w", stream: true }),
    );
    expect(body).toMatchObject({
      input_ids: [1, 2_000_000],
      stream: true,
      sampling_params: { stop_token_ids: [2], ...expected },
    });
  });

  test.each([
    ["json-schema", { json: schema }],
    ["regex", { regex: "a+" }],
    ["structural-tag", { structural_tag: JSON.stringify(tag) }],
  ] as const)("vLLM, %s", (type, structured) => {
    const piece = pieceWith(constraints[type]);
    const sampling = { structured_outputs: structured };
    const options = { wireId: "w", model: undefined, stream: true };
    const streamed = { stream: true, stream_options: { include_usage: true } };
    expect(toJson(encodeGenerateBody(piece, options))).toMatchObject({
      token_ids: [1, 2_000_000],
      sampling_params: sampling,
      ...streamed,
    });
    expect(toJson(encodeCompletionsBody(piece, options))).toMatchObject({
      prompt: [1, 2_000_000],
      ...sampling,
      ...streamed,
    });
  });

  test("llama.cpp, which supports schemas", () => {
    const settings = { model: undefined, slotAffinity: "prompt" } as const;
    const options = { settings, leavesTextUnparsed: true };
    expect(
      toJson(encodeCompletionBody(pieceWith(constraints["json-schema"]), options)),
    ).toMatchObject({ prompt: [1, 2_000_000], json_schema: schema });
  });

  test("no fields without a constraint", () => {
    const piece = pieceWith();
    const sampling = toJson(encodeSglangBody(piece, { wireId: "w", stream: false }))[
      "sampling_params"
    ] as Json;
    expect(Object.keys(sampling)).not.toContain("stop");
    const body = toJson(encodeCompletionsBody(piece, { wireId: "w", model: "m", stream: false }));
    expect(body).not.toHaveProperty("stop");
    expect(body).not.toHaveProperty("structured_outputs");
    expect(body).not.toHaveProperty("stream_options");
  });

  test("engines in process refuse constraints", () => {
    const request = {
      promptIds: [1],
      sampling: {},
      maxNewTokens: 1,
      stopTokenIds: [],
      requestId: "r",
      sessionId: "s",
      constraint: constraints.regex,
    };
    const limits = { vocabularySize: 10, contextLength: 10 };
    expect(() => checkGenerateRequest(request, limits)).toThrow(RolloutError);
  });
});
