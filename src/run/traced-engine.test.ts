import { trace, type Attributes, type Span, type TracerProvider } from "@opentelemetry/api";
import { afterEach, describe, expect, test } from "vitest";
import type { Engine, Generation } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { traceGenerate } from "./traced-engine.ts";

const request = {
  ...{ promptIds: [1, 5], sampling: { temperature: 0.5 }, maxNewTokens: 9, stopTokenIds: [2] },
  ...{ requestId: "r", sessionId: "shop/0#1" },
};
const generation: Generation = {
  ...{ outputIds: [2], logprobs: [0], finish: { type: "stop" }, discarded: [] },
  pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "", finish: "stop" }],
};

/** Registers an SDK that notes spans. */
function noteSpans() {
  const spans: { name: string; attributes: Attributes; hasEnded: boolean }[] = [];
  const startSpan = (name: string) => {
    const noted = { name, attributes: {} as Attributes, hasEnded: false };
    spans.push(noted);
    return {
      isRecording: () => true,
      setAttributes: (more: Attributes) => Object.assign(noted.attributes, more),
      setAttribute: (key: string, value: string) => (noted.attributes[key] = value),
      setStatus: () => {},
      end: () => (noted.hasEnded = true),
    } as unknown as Span;
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) } as unknown as TracerProvider);
  return spans;
}

afterEach(() => trace.disable());

function engineOf(generate: Engine["generate"]) {
  return { kind: "sglang", generate };
}

describe("traceGenerate()", () => {
  test("makes a span of each policy call, by the GenAI conventions", async () => {
    const spans = noteSpans();
    const generate = traceGenerate(
      engineOf(async () => generation),
      "qwen",
    );
    expect(await generate(request)).toBe(generation);
    expect(spans).toEqual([
      {
        name: "text_completion qwen",
        attributes: {
          ...{ "gen_ai.operation.name": "text_completion", "gen_ai.provider.name": "sglang" },
          ...{ "gen_ai.request.model": "qwen", "gen_ai.conversation.id": "shop/0#1" },
          ...{ "gen_ai.request.max_tokens": 9, "gen_ai.request.temperature": 0.5 },
          ...{ "gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1 },
          "gen_ai.response.finish_reasons": ["stop"],
        },
        hasEnded: true,
      },
    ]);
  });

  test("names what failed, and throws it on", async () => {
    const spans = noteSpans();
    const error = new RolloutError("engine/timeout", "Cannot sample");
    const generate = traceGenerate(
      engineOf(async () => Promise.reject(error)),
      undefined,
    );
    await expect(generate(request)).rejects.toBe(error);
    expect(spans[0]?.attributes["error.type"]).toBe("engine/timeout");
    expect(spans[0]?.hasEnded).toBe(true);
  });

  test("passes calls through where no SDK is registered", async () => {
    const generate = traceGenerate(
      engineOf(async () => generation),
      "qwen",
    );
    expect(await generate(request)).toBe(generation);
  });
});
