import type {
  Attributes,
  Context,
  Span,
  SpanKind,
  SpanStatusCode,
  Tracer,
} from "@opentelemetry/api";
import type { Engine, GenerateRequest, Generation } from "../engine/engine.ts";
import type { EpisodeTracer } from "../episode/episode-tracer.ts";
import type { Episode } from "../episode/episode.ts";
import { RolloutError, describeError } from "../errors.ts";
import { passOn } from "./engine-watch.ts";
import { registeredTracing, type RegisteredTracing } from "./registered-tracing.ts";
import type { StartRunOptions } from "./start-run-options.ts";

/** Numbers of the API's enums; the API itself is loaded where a program registered an SDK. */
const clientSpan: SpanKind.CLIENT = 2;
const errorStatus: SpanStatusCode.ERROR = 2;

/**
 * Makes spans of what episodes do, in whatever OpenTelemetry SDK the program registered; without one they
 * cost nothing. An episode is the parent of its policy calls, tool calls and the user's replies. No text and
 * no ids are in them.
 *
 * Source: OpenTelemetry's semantic conventions for generative AI: client, agent and tool spans.
 *
 * @param model - Its name, where it has one.
 */
export function traceSetup(
  setup: StartRunOptions["setup"],
  model?: string,
): StartRunOptions["setup"] {
  /** Of the episodes that are played, by rollout: the parents of their policy calls. */
  const parents = new Map<string, Context>();
  const generate = traceGenerate(setup.engine, { parents, model });
  return {
    ...setup,
    engine: { ...passOn(setup.engine), generate },
    tracer: traceEpisodes(setup, parents),
  };
}

function traceGenerate(
  engine: Engine,
  {
    parents,
    model,
  }: { readonly parents: Map<string, Context>; readonly model: string | undefined },
): Engine["generate"] {
  const name = model === undefined ? "text_completion" : `text_completion ${model}`;
  return async (request, options) => {
    const parent = parents.get(request.sessionId);
    const span = registeredTracing()?.tracer.startSpan(name, { kind: clientSpan }, parent);
    if (span?.isRecording() !== true) return await engine.generate(request, options);
    span.setAttributes({ ...requestAttributes(request), "gen_ai.provider.name": engine.kind });
    if (model !== undefined) span.setAttribute("gen_ai.request.model", model);
    try {
      const generation = await engine.generate(request, options);
      span.setAttributes(resultAttributes(request, generation));
      return generation;
    } catch (error) {
      noteFailure(span, error);
      throw error;
    } finally {
      span.end();
    }
  };
}

function traceEpisodes(
  { agent, environment }: StartRunOptions["setup"],
  parents: Map<string, Context>,
): EpisodeTracer {
  return {
    begin({ rolloutId, task }) {
      const tracing = registeredTracing();
      if (tracing === undefined) return undefined;
      const { tracer, trace, context }: RegisteredTracing = tracing;
      const span = tracer.startSpan(`invoke_agent ${agent.strategy}`);
      if (!span.isRecording()) return undefined;
      const parent = trace.setSpan(context.active(), span);
      parents.set(rolloutId, parent);
      span.setAttributes({
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent.strategy,
        "gen_ai.conversation.id": rolloutId,
        "turnwright.task.id": task.id,
        "turnwright.environment": environment.name,
      });
      return {
        call(name) {
          const called = startCall(tracer, name, parent);
          return (error) => {
            if (error !== undefined) noteFailure(called, error);
            called.end();
          };
        },
        end(episode) {
          parents.delete(rolloutId);
          if (episode !== undefined) noteEnd(span, episode);
          span.end();
        },
      };
    },
  };
}

function startCall(tracer: Tracer, name: string, parent: Context): Span {
  const tool = name.startsWith("step ") ? name.slice("step ".length) : undefined;
  if (tool === undefined || tool === "say") {
    return tracer.startSpan(name === "score" ? "score" : "user reply", {}, parent);
  }
  const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool };
  return tracer.startSpan(`execute_tool ${tool}`, { attributes }, parent);
}

function noteEnd(span: Span, { outcome, stopReason, reward, failure, counts }: Episode): void {
  span.setAttributes({
    "turnwright.outcome": outcome,
    "turnwright.stop_reason": stopReason,
    ...(reward !== undefined && { "turnwright.reward": reward }),
    "turnwright.turn_count": counts.turnCount,
  });
  if (failure === undefined) return;
  span.setAttribute("error.type", failure.code);
  span.setStatus({ code: errorStatus, message: failure.message });
}

function requestAttributes({ maxNewTokens, sampling, sessionId }: GenerateRequest): Attributes {
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

function resultAttributes(
  { promptIds }: GenerateRequest,
  { outputIds, finish }: Generation,
): Attributes {
  return {
    "gen_ai.usage.input_tokens": promptIds.length,
    "gen_ai.usage.output_tokens": outputIds.length,
    "gen_ai.response.finish_reasons": [finish.type],
  };
}

function noteFailure(span: Span, error: unknown): void {
  const type = error instanceof RolloutError ? error.code : (error as Error | undefined)?.name;
  span.setAttribute("error.type", type ?? "_OTHER");
  span.setStatus({ code: errorStatus, message: describeError(error) });
}
