import type {
  Attributes,
  Context,
  Span,
  SpanKind,
  SpanStatusCode,
  Tracer,
} from "@opentelemetry/api";
import type { ChatTurn } from "../engine/chat/chat-turn.ts";
import type { Engine, GenerateRequest, Generation } from "../engine/engine.ts";
import type { EpisodeTracer } from "../episode/episode-tracer.ts";
import type { Episode } from "../episode/episode.ts";
import { RolloutError } from "../errors.ts";
import { passOn } from "../engine/pass-on.ts";
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
  const { engine } = setup;
  const traced = { engine, episodes, model };
  const complete = engine.complete && traceCompletions(traced);
  return {
    ...setup,
    engine: {
      ...passOn(engine),
      generate: traceGenerations(traced),
      ...(complete && { complete }),
    },
    tracer: traceEpisodes(setup, episodes),
  };
}

/** An engine with the running episodes by rollout id, and the model's name. */
interface TracedEngine {
  readonly engine: Engine;
  readonly episodes: Map<string, TracedEpisode>;
  readonly model: string | undefined;
}

function traceGenerations(traced: TracedEngine): Engine["generate"] {
  return async (request, options) =>
    await traceCall(traced, {
      operation: "text_completion",
      request,
      maxTokens: request.maxNewTokens,
      call: () => traced.engine.generate(request, options),
      describe: (generation) => resultAttributes(request, generation),
    });
}

function traceCompletions(traced: TracedEngine): NonNullable<Engine["complete"]> {
  return async (request, options) =>
    await traceCall(traced, {
      operation: "chat",
      request,
      maxTokens: request.maxNewTokens,
      call: () => traced.engine.complete!(request, options),
      describe: turnAttributes,
    });
}

/** Makes a call within its span. Errors of the SDK do not count as failures of the engine. */
async function traceCall<Result>(
  { engine, episodes, model }: TracedEngine,
  terms: {
    readonly operation: "text_completion" | "chat";
    readonly request: Pick<GenerateRequest, "sampling" | "sessionId">;
    readonly maxTokens: number;
    readonly call: () => Promise<Result>;
    readonly describe: (result: Result) => Attributes;
  },
): Promise<Result> {
  const { operation, request, call } = terms;
  const episode = episodes.get(request.sessionId);
  const quietly = <Made>(work: () => Made): Made | undefined => {
    try {
      return work();
    } catch (error) {
      if (episode !== undefined) episode.fault ??= { error };
      return undefined;
    }
  };
  const span = quietly(() => {
    const name = model === undefined ? operation : `${operation} ${model}`;
    const kind = { kind: clientSpan };
    const started = registeredTracing()?.tracer.startSpan(name, kind, episode?.context);
    if (started?.isRecording() !== true) return undefined;
    started.setAttributes({ ...requestAttributes(terms), "gen_ai.provider.name": engine.kind });
    if (model !== undefined) started.setAttribute("gen_ai.request.model", model);
    return started;
  });
  if (span === undefined) return await call();
  try {
    const result = await call();
    quietly(() => span.setAttributes(terms.describe(result)));
    return result;
  } catch (error) {
    quietly(() => noteFailure(span, error));
    throw error;
  } finally {
    quietly(() => span.end());
  }
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

function requestAttributes({
  operation,
  request: { sampling, sessionId },
  maxTokens,
}: {
  readonly operation: string;
  readonly request: Pick<GenerateRequest, "sampling" | "sessionId">;
  readonly maxTokens: number;
}): Attributes {
  const { temperature, topP, topK, seed } = sampling;
  return {
    "gen_ai.operation.name": operation,
    "gen_ai.conversation.id": sessionId,
    "gen_ai.request.max_tokens": maxTokens,
    ...(temperature !== undefined && { "gen_ai.request.temperature": temperature }),
    ...(topP !== undefined && { "gen_ai.request.top_p": topP }),
    ...(topK !== undefined && { "gen_ai.request.top_k": topK }),
    ...(seed !== undefined && { "gen_ai.request.seed": seed }),
  };
}

/** Returns the attributes of an engine's answer. The caller of the engine checks the answer, not this function. */
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

function turnAttributes(turn: Partial<ChatTurn> | undefined): Attributes {
  const { usage, finish } = turn ?? {};
  return {
    ...(usage && {
      "gen_ai.usage.input_tokens": usage.promptTokenCount,
      "gen_ai.usage.output_tokens": usage.sampledTokenCount,
    }),
    ...(finish && { "gen_ai.response.finish_reasons": [finish] }),
  };
}

function noteFailure(span: Span, error: unknown): void {
  if (error instanceof RolloutError) noteError(span, error.code);
  else noteError(span, error instanceof Error ? error.name : "_OTHER");
}

/**
 * Marks a span as failed. Leaves out the error's message, because it may quote a refused key, and spans are not
 * redacted.
 */
function noteError(span: Span, type: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: errorStatus });
}
