import { SpanKind, SpanStatusCode, trace, type Attributes, type Span } from "@opentelemetry/api";
import type { Engine, GenerateRequest, Generation } from "../engine/engine.ts";
import { RolloutError, describeError } from "../errors.ts";

/**
 * An engine's policy calls as spans, in whatever OpenTelemetry SDK the program registered; without one
 * they cost nothing. No text and no ids are in them.
 *
 * Source: OpenTelemetry's semantic conventions for generative AI, client spans.
 */
export function traceGenerate(
  engine: Pick<Engine, "kind" | "generate">,
  model: string | undefined,
): Engine["generate"] {
  const tracer = trace.getTracer("turnwright");
  const name = model === undefined ? "text_completion" : `text_completion ${model}`;
  return async (request, options) => {
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT });
    if (!span.isRecording()) return await engine.generate(request, options);
    span.setAttributes({ ...attributesOf(request), "gen_ai.provider.name": engine.kind });
    if (model !== undefined) span.setAttribute("gen_ai.request.model", model);
    try {
      const generation = await engine.generate(request, options);
      span.setAttributes(resultOf(request, generation));
      return generation;
    } catch (error) {
      noteFailure(span, error);
      throw error;
    } finally {
      span.end();
    }
  };
}

function attributesOf({ maxNewTokens, sampling, sessionId }: GenerateRequest): Attributes {
  const { temperature, topP, topK, seed } = sampling;
  return {
    "gen_ai.operation.name": "text_completion",
    "gen_ai.conversation.id": sessionId,
    "gen_ai.request.max_tokens": maxNewTokens,
    ...(temperature !== undefined && { "gen_ai.request.temperature": temperature }),
    ...(topP !== undefined && { "gen_ai.request.top_p": topP }),
    ...(topK !== undefined && { "gen_ai.request.top_k": topK }),
    ...(seed !== undefined && { "gen_ai.request.seed": seed }),
  };
}

function resultOf({ promptIds }: GenerateRequest, { outputIds, finish }: Generation): Attributes {
  return {
    "gen_ai.usage.input_tokens": promptIds.length,
    "gen_ai.usage.output_tokens": outputIds.length,
    "gen_ai.response.finish_reasons": [finish.type],
  };
}

function noteFailure(span: Span, error: unknown): void {
  const type = error instanceof RolloutError ? error.code : (error as Error | undefined)?.name;
  span.setAttribute("error.type", type ?? "_OTHER");
  span.setStatus({ code: SpanStatusCode.ERROR, message: describeError(error) });
}
