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
import { RolloutError } from "../errors.ts";
import { passOn } from "./policy/engine-watch.ts";
import { registeredTracing, type RegisteredTracing } from "./registered-tracing.ts";
import type { StartRunOptions } from "./start-run-options.ts";

/** Values of the API's enums. The API itself is loaded only if a program registered an SDK. */
const clientSpan: SpanKind.CLIENT = 2;
const errorStatus: SpanStatusCode.ERROR = 2;

/** An episode with its span. */
interface TracedEpisode {
  /** The parent of the episode's policy calls. */
  readonly context: Context;
  /** An error that the SDK threw at one of the policy calls. */
  fault?: { readonly error: unknown };
}

/**
 * Creates spans in the OpenTelemetry SDK that the program registered; without one, tracing costs nothing. An episode's
 * span is the parent of its policy calls, tool calls and user replies. Spans contain no texts and no ids, and of
 * failures only the code. An SDK that throws does not change an episode.
 *
 * Source: OpenTelemetry's semantic conventions for generative AI: client, agent and tool spans.
 *
 * @param model - The model's name.
 */
export function traceSetup(
  setup: StartRunOptions["setup"],
  model?: string,
): StartRunOptions["setup"] {
  /** The running episodes by rollout id. */
  const episodes = new Map<string, TracedEpisode>();
  const generate = traceGenerate(setup.engine, { episodes, model });
  return {
    ...setup,
    engine: { ...passOn(setup.engine), generate },
    tracer: traceEpisodes(setup, episodes),
  };
}

function traceGenerate(
  engine: Engine,
  {
    episodes,
    model,
  }: { readonly episodes: Map<string, TracedEpisode>; readonly model: string | undefined },
): Engine["generate"] {
  const name = model === undefined ? "text_completion" : `text_completion ${model}`;
  const start = (request: GenerateRequest, parent: Context | undefined): Span | undefined => {
    const span = registeredTracing()?.tracer.startSpan(name, { kind: clientSpan }, parent);
    if (span?.isRecording() !== true) return undefined;
    span.setAttributes({ ...requestAttributes(request), "gen_ai.provider.name": engine.kind });
    if (model !== undefined) span.setAttribute("gen_ai.request.model", model);
    return span;
  };
  return async (request, options) => {
    const episode = episodes.get(request.sessionId);
    /** Errors of the SDK do not count as failures of the engine. */
    const quietly = <Result>(work: () => Result): Result | undefined => {
      try {
        return work();
      } catch (error) {
        if (episode !== undefined) episode.fault ??= { error };
        return undefined;
      }
    };
    const span = quietly(() => start(request, episode?.context));
    if (span === undefined) return await engine.generate(request, options);
    try {
      const generation = await engine.generate(request, options);
      quietly(() => span.setAttributes(resultAttributes(request, generation)));
      return generation;
    } catch (error) {
      quietly(() => noteFailure(span, error));
      throw error;
    } finally {
      quietly(() => span.end());
    }
  };
}

function traceEpisodes(
  { agent, environment }: StartRunOptions["setup"],
  episodes: Map<string, TracedEpisode>,
): EpisodeTracer {
  return {
    begin({ rolloutId, task }) {
      const tracing = registeredTracing();
      if (tracing === undefined) return undefined;
      const { tracer, trace, context }: RegisteredTracing = tracing;
      const span = tracer.startSpan(`invoke_agent ${agent.strategy}`);
      if (!span.isRecording()) return undefined;
      const parent = trace.setSpan(context.active(), span);
      span.setAttributes({
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent.strategy,
        "gen_ai.conversation.id": rolloutId,
        "turnwright.task.id": task.id,
        "turnwright.environment": environment.name,
      });
      const traced: TracedEpisode = { context: parent };
      episodes.set(rolloutId, traced);
      return {
        call(name) {
          const called = startCall(tracer, name, parent);
          return (error) => {
            if (error !== undefined) noteFailure(called, error);
            called.end();
          };
        },
        end(episode) {
          episodes.delete(rolloutId);
          if (episode !== undefined) noteEnd(span, episode);
          span.end();
          // The engine's caller cannot get an error of the SDK.
          if (traced.fault !== undefined) throw traced.fault.error;
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
  noteError(span, failure.code);
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

/** An engine's answer is checked by its user, not here. */
function resultAttributes(
  { promptIds }: GenerateRequest,
  generation: Partial<Generation> | undefined,
): Attributes {
  const { outputIds, finish } = generation ?? {};
  return {
    "gen_ai.usage.input_tokens": promptIds.length,
    ...(outputIds && { "gen_ai.usage.output_tokens": outputIds.length }),
    ...(finish && { "gen_ai.response.finish_reasons": [finish.type] }),
  };
}

function noteFailure(span: Span, error: unknown): void {
  if (error instanceof RolloutError) noteError(span, error.code);
  else noteError(span, error instanceof Error ? error.name : "_OTHER");
}

/** The error's message is left out: it may quote a refused key, and spans are not redacted. */
function noteError(span: Span, type: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: errorStatus });
}
