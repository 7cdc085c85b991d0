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

/** Numbers of the API's enums; the API itself is loaded where a program registered an SDK. */
const clientSpan: SpanKind.CLIENT = 2;
const errorStatus: SpanStatusCode.ERROR = 2;

/** An episode that is traced. */
interface TracedEpisode {
  /** The parent of its policy calls. */
  readonly context: Context;
  /** What the SDK threw at one of its policy calls. */
  fault?: { readonly error: unknown };
}

/**
 * Makes spans of what episodes do, in whatever OpenTelemetry SDK the program registered; without one they
 * cost nothing. An episode is the parent of its policy calls, tool calls and the user's replies. No text and
 * no ids are in them: of what failed they have the code. An SDK that throws costs no episode anything.
 *
 * Source: OpenTelemetry's semantic conventions for generative AI: client, agent and tool spans.
 *
 * @param model - Its name, where it has one.
 */
export function traceSetup(
  setup: StartRunOptions["setup"],
  model?: string,
): StartRunOptions["setup"] {
  /** Those that are played, by rollout. */
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
    /** What the SDK throws is no failure of the engine's. */
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
          // Whoever asked the engine could not be told.
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

/** What an engine answered is checked where it is used. */
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

/** Its message may quote anything, a key that a server refused too, and spans pass no redactor. */
function noteError(span: Span, type: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: errorStatus });
}
