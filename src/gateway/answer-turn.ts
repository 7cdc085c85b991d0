import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { ColumnStore } from "../columns/column-store.ts";
import type { Engine, SamplingConstraint, SamplingParameters } from "../engine/engine.ts";
import { RolloutError, UsageError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import { startDeadline } from "../async/deadline.ts";
import type { TurnRecord } from "../episode/episode.ts";
import { CallWatch } from "../episode/turn/call-watch.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { ClientError } from "./client-error.ts";
import type { RequestedTurn, ReplyEvent, ReplyStart, ReplyToken } from "./conversation.ts";
import type { GatewayDialect, StreamWriter } from "./dialects/dialect.ts";
import type { MintId } from "./mint-id.ts";
import type { GatewayTurn } from "./session/gateway-turn.ts";
import type { ReplyFeed } from "./session/reply-feed.ts";
import type { SessionLimits } from "./session/session-limits.ts";
import { toTemplateTurn, type GatewaySession, type SessionSetback } from "./session/session.ts";
import type { Placement } from "./tree/session-tree.ts";
import { toSentTurn, type TurnNode } from "./tree/turn-node.ts";
import type { BuiltPrompt, PromptBuilder } from "./turn/prompt-builder.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { countReasoningTokens, replyTokens } from "./turn/reply-tokens.ts";
import { sampleReply, type SampledReply } from "./turn/sample-reply.ts";
import {
  isConstraintIgnored,
  unsupportedFeatures,
  wantedConstraint,
  type EnforceableConstraint,
  type WantedConstraint,
} from "./turn/turn-constraint.ts";
import type { ReplyFormats } from "./turn/turn-reader.ts";
import { writeJsonWith } from "../environment/plain-text.ts";
import { writtenText } from "../json/exact-json.ts";

/** The shared services that answer turns: engine, renderer, limits and journal. */
export interface TurnServices {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly builder: PromptBuilder;
  readonly formats: ReplyFormats;
  readonly sampling: SamplingParameters;
  /** The side columns of each turn, and the store of their bytes. Clients never see them. Absent: none. */
  readonly columns?: SessionColumns;
  /**
   * The source of the sampling parameters: the gateway (`pin`), or the client for those that its request sets
   * (`honour`).
   */
  readonly clientSampling: "pin" | "honour";
  /**
   * The treatment of features that the gateway cannot provide, such as server tools and text
   * formats.
   */
  readonly constraints: "ignore" | "refuse";
  /** Names of the trained models. Turns of other models are kept but not trained. Absent: all. */
  readonly policyModels?: readonly string[];
  readonly limits: SessionLimits;
  readonly mint: MintId;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with the complete error of an outage. The client receives only its code. */
  readonly onFailure: (error: RolloutError | UsageError) => void;
  /** Called with each sampled turn, before the client receives its end. */
  readonly onTurn: (turn: Pick<TurnRecord, "sampledTokenCount" | "engineMs">) => void;
  /** Resolves when turns may be sampled, for example after a weight update. */
  readonly whenOpen: (signal: AbortSignal) => Promise<void>;
  /** Resolves once the turn is on disk. */
  readonly journal: (
    session: GatewaySession,
    placement: Placement<GatewayTurn>,
    node: TurnNode<GatewayTurn>,
    tools: RequestedTurn["tools"],
  ) => Promise<void>;
}

/** The side columns of a gateway's turns. */
export interface SessionColumns {
  readonly specs: ColumnSpecs;
  readonly store: ColumnStore;
}

/** The services with the counters of the request's session. */
type CountedServices = TurnServices & Pick<GatewaySession, "counters">;

/** One client request for a turn. */
export interface ClientRequest {
  readonly dialect: GatewayDialect;
  readonly requested: RequestedTurn;
  /** Names that the client gave its conversation. */
  readonly labels: Readonly<Record<string, string>>;
  /** Aborted when no reader waits for the reply. */
  readonly signal: AbortSignal;
}

/** Interval in milliseconds at which a stream without output sends a keep-alive. */
const keepAliveMs = 10_000;

/**
 * Answers one request: finds the turn that it continues, samples the next one, and streams the
 * reply into the feed. Errors become an error reply.
 *
 * @returns the sampled turn, or `undefined` after an error.
 * @throws only for a bug of the gateway.
 */
export async function answerTurn(
  services: TurnServices,
  session: GatewaySession,
  request: ClientRequest,
  feed: ReplyFeed,
): Promise<TurnNode<GatewayTurn> | undefined> {
  const output = new ReplyOutput(request, feed, services.clock);
  session.activeCount += 1;
  session.touch();
  try {
    return await sampleAndWrite(services, session, request, output);
  } catch (error) {
    session.setback = setbackOf(error) ?? session.setback;
    session.countRefusal(error);
    output.fail(toClientError(error));
    if (error instanceof RolloutError || error instanceof UsageError) services.onFailure(error);
    if (isOwnBug(error, session, request)) throw error;
    return undefined;
  } finally {
    output.close();
    session.activeCount -= 1;
    session.touch();
  }
}

/** Returns the setback if the error is a full context or an outage; `undefined` for any other error. */
function setbackOf(error: unknown): SessionSetback | undefined {
  if (error instanceof ClientError && error.kind === "too-long") return contextFull;
  if (!(error instanceof RolloutError)) return undefined;
  return error.code === "engine/prompt-too-long" ? contextFull : { type: "failure", error };
}

const contextFull: SessionSetback = { type: "limit", stopReason: "context-full" };

function isOwnBug(error: unknown, session: GatewaySession, request: ClientRequest): boolean {
  const isExpected =
    error instanceof ClientError || error instanceof RolloutError || error instanceof UsageError;
  return !isExpected && !request.signal.aborted && !session.stop.signal.aborted;
}

/** Finds the conversation's place in the tree and renders its prompt. */
export async function placeAndRender(
  { builder }: Pick<TurnServices, "builder">,
  session: GatewaySession,
  requested: RequestedTurn,
): Promise<{ readonly placement: Placement<GatewayTurn>; readonly built: BuiltPrompt }> {
  session.requireFits(requested);
  const placement = session.tree.place(requested);
  const { tools } = requested;
  const { callIds } = session.memory;
  if (placement.parent === undefined) {
    return { placement, built: await builder.begin(placement.environment, tools, callIds) };
  }
  const built = await builder.continue(placement.parent, placement.environment, tools, callIds);
  if (!("cause" in built)) return { placement, built };
  const root = session.tree.asRoot(requested, built.cause);
  return { placement: root, built: await builder.begin(root.environment, tools, callIds) };
}

async function sampleAndWrite(
  services: TurnServices,
  session: GatewaySession,
  request: ClientRequest,
  output: ReplyOutput,
): Promise<TurnNode<GatewayTurn>> {
  const { engine, renderer, formats, mint, clock } = services;
  const { counters } = session;
  const counted = { ...services, counters };
  const { requested, dialect } = request;
  session.requireRoom();
  counters.ignored([...requested.ignoredFields, ...pinnedFields(services, requested)]);
  for (const { what, why } of unsupportedFeatures(requested)) leaveUnenforced(counted, what, why);
  const { placement, built } = await placeAndRender(services, session, requested);
  const wanted = chooseConstraint(counted, requested, built);
  const start: ReplyStart = {
    id: mint(dialect.idPrefixes.reply),
    createdAtMs: services.now(),
    promptTokenCount: built.recorder.length,
    requested,
  };
  const maxNewTokens = session.maxNewTokensAfter(built.recorder.length, requested);
  output.prepare(dialect.createWriter(start));
  await services.whenOpen(request.signal);
  const sampling = session.seeded(chooseSampling(services, requested));
  const startedAt = clock.now();
  using stop = startDeadline({
    ms: Infinity,
    parents: [request.signal, session.stop.signal],
    clock,
  });
  using watch = new CallWatch(stop.signal, clock);
  const { columns } = services;
  const { reply, enforced } = await sampleConstrained(counted, wanted, async (constraint) =>
    sampleReply({
      engine,
      renderer,
      request: {
        // Copied, because an engine may change its argument.
        promptIds: built.recorder.promptIds.slice(),
        sampling,
        maxNewTokens,
        stopTokenIds: renderer.stopTokenIds,
        ...(constraint !== undefined && { constraint }),
        ...(columns !== undefined && {
          columns: { specs: columns.specs, knownRows: built.recorder.knownRows },
        }),
        vocabularySize: renderer.codec.vocabularySize,
        requestId: session.nextRequestId(),
        sessionId: session.identity.sessionId,
      },
      read: {
        formats,
        tools: requested.toolChoice.type === "none" ? [] : requested.tools,
        callForms: requested.callForms,
        parallelCalls: requested.parallelCalls,
        reasoningOpened: built.reasoningOpened,
        stops: requested.stop,
        ids: { mint, callPrefix: dialect.idPrefixes.call },
      },
      onEvents: (events) => output.write(events),
      isStreamed: requested.isStreamed,
      watch,
      columnStore: columns?.store,
      engineTimeoutMs: services.limits.engineTimeoutMs,
    }),
  );
  const record = {
    ...toRecord(services, { request, placement, built, start, reply, sampling }),
    ...(enforced !== undefined && { constraint: enforced.constraint.type }),
  };
  // Too late to refuse the request: the client may have received the turn.
  if (enforced !== undefined && isConstraintIgnored(requested, reply))
    counters.unenforced(enforced.what);
  const engineMs = clock.now() - startedAt;
  const turn = toSentTurn(reply.parts);
  const depth = session.tree.nodes.length;
  const message = toTemplateTurn(turn, { depth, writtenIds: reply.writtenIds });
  const node = session.addTurn(placement, {
    turn,
    record: { ...record, message, engineMs },
    isDelivered: false,
  });
  services.builder.keep(node, built.recorder);
  counters.turn(placement.cause, record.notes);
  services.onTurn({ sampledTokenCount: reply.generation.outputIds.length, engineMs });
  counters.leftOutCalls(reply.leftOutCallCount);
  await services.journal(session, placement, node, requested.tools);
  const tokens = requested.includesLogprobs ? await replyTokens(renderer, reply) : undefined;
  const reasoningTokenCount = dialect.countsReasoning
    ? await countReasoningTokens(renderer, reply, tokens)
    : undefined;
  output.finish(dialect, start, reply, withoutUndefined({ tokens, reasoningTokenCount }));
  return node;
}

function chooseSampling(
  { sampling, clientSampling }: TurnServices,
  requested: RequestedTurn,
): SamplingParameters {
  return clientSampling === "honour" ? { ...sampling, ...requested.sampling } : sampling;
}

/**
 * Returns the names of the client's sampling parameters that the gateway's own parameters override.
 */
function pinnedFields({ clientSampling }: TurnServices, { sampling }: RequestedTurn): string[] {
  if (clientSampling === "honour") return [];
  return Object.keys(sampling).map((name) =>
    name.replaceAll(/[A-Z]/g, (at) => `_${at.toLowerCase()}`),
  );
}

/**
 * Returns the constraint on the turn, and counts one that cannot be enforced.
 *
 * @throws ClientError `invalid` if the constraint cannot be enforced and `constraints` is `refuse`.
 */
function chooseConstraint(
  services: CountedServices,
  requested: RequestedTurn,
  { reasoningOpened }: BuiltPrompt,
): WantedConstraint {
  const parser = services.formats.parser?.name;
  const wanted = wantedConstraint(requested, { parser, reasoningOpened });
  if (wanted.type === "unenforceable") leaveUnenforced(services, wanted.what, wanted.why);
  return wanted;
}

/**
 * Counts a feature that is not enforced.
 *
 * @throws ClientError `invalid` if `constraints` is `refuse`.
 */
function leaveUnenforced(
  { constraints, counters }: CountedServices,
  what: string,
  why: string,
): void {
  counters.unenforced(what);
  if (constraints === "ignore") return;
  throw new ClientError("invalid", `Cannot enforce ${what}: ${why}`);
}

/**
 * Samples a turn with the requested constraint, or without it if the engine does not accept it.
 *
 * @throws ClientError `invalid` if the engine rejects the constraint and `constraints` is `refuse`.
 */
async function sampleConstrained(
  services: CountedServices,
  wanted: WantedConstraint,
  sample: (constraint?: SamplingConstraint) => Promise<SampledReply>,
): Promise<{
  readonly reply: SampledReply;
  /** The constraint that the engine accepted. Absent if the turn was sampled without one. */
  readonly enforced?: EnforceableConstraint;
}> {
  if (wanted.type !== "enforceable") return { reply: await sample() };
  try {
    return { reply: await sample(wanted.constraint), enforced: wanted };
  } catch (error) {
    // The engine rejected the request before sampling, so it is safe to sample again without the
    // constraint.
    if (!(error instanceof RolloutError) || error.code !== "engine/bad-request") throw error;
    services.onFailure(error);
    leaveUnenforced(services, wanted.what, "the engine does not accept this constraint");
    return { reply: await sample() };
  }
}

function toRecord(
  { policyModels, now }: TurnServices,
  turn: {
    readonly request: ClientRequest;
    readonly placement: Placement<GatewayTurn>;
    readonly built: BuiltPrompt;
    readonly start: ReplyStart;
    readonly reply: SampledReply;
    readonly sampling: SamplingParameters;
  },
): Omit<GatewayTurn, "message" | "engineMs"> {
  const { request, placement, built, start, reply, sampling } = turn;
  const { requested, dialect, labels } = request;
  return {
    generation: reply.generation,
    prompt: built.prompt,
    isTrainable: policyModels === undefined || policyModels.includes(requested.model),
    shown: built.shown,
    replyId: start.id,
    dialect: dialect.name,
    model: requested.model,
    environment: placement.environment,
    hasInstructions: requested.hasInstructions === true && placement.parent === undefined,
    sampling,
    finish: reply.finish,
    notes: [...placement.notes, ...built.notes],
    attemptCounts: reply.attemptCounts,
    isFormatError: reply.isFormatError,
    labels,
    promptTokenCount: built.recorder.length,
    startedAtMs: Math.min(start.createdAtMs, now()),
  };
}

/**
 * Converts an error to a reply for the client. The client is usually an agent with a shell, so the
 * reply contains the error code but no address, path or id.
 */
export function toClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  if (error instanceof RolloutError) {
    const { code } = error;
    if (code === "engine/prompt-too-long") {
      const message = "prompt is too long: prompt and output do not fit the engine's context";
      return new ClientError("too-long", message, { cause: error });
    }
    if (code.startsWith("engine/") || code === "internal/tokenizer") {
      const who = code.startsWith("engine/") ? "engine" : "tokenizer";
      const message = `The ${who} did not answer (${code}); the gateway's own output says why`;
      return new ClientError("unavailable", message, { cause: error, retryAfterS: 1 });
    }
  }
  const message = "The gateway failed; its own output says why";
  return new ClientError("internal", message, { cause: error });
}

/** Writes a reply into its feed: as a stream, or as one JSON body. */
class ReplyOutput {
  readonly #isStreamed: boolean;
  readonly #feed: ReplyFeed;
  readonly #clock: Clock;
  #writer: StreamWriter | undefined;
  #isStarted = false;
  #isDone = false;
  #cancelKeepAlive: (() => void) | undefined;

  constructor({ requested }: ClientRequest, feed: ReplyFeed, clock: Clock) {
    this.#isStreamed = requested.isStreamed;
    this.#feed = feed;
    this.#clock = clock;
  }

  /** Allows a streamed reply to start, with its first event or with a keep-alive. */
  prepare(writer: StreamWriter): void {
    if (!this.#isStreamed) return;
    this.#writer = writer;
    this.#scheduleKeepAlive();
  }

  write(events: readonly ReplyEvent[]): void {
    const writer = this.#writer;
    if (writer === undefined || this.#isDone) return;
    this.#start(writer);
    this.#feed.write(events.map((event) => writer.write(event)).join(""));
    this.#scheduleKeepAlive();
  }

  finish(
    dialect: GatewayDialect,
    start: ReplyStart,
    { parts, finish, generation }: SampledReply,
    {
      tokens,
      reasoningTokenCount,
    }: {
      readonly tokens?: readonly ReplyToken[];
      readonly reasoningTokenCount?: number;
    },
  ): void {
    const usage = {
      promptTokenCount: start.promptTokenCount,
      cachedTokenCount: Math.min(generation.cachedTokenCount ?? 0, start.promptTokenCount),
      sampledTokenCount: generation.outputIds.length,
      ...(reasoningTokenCount !== undefined && { reasoningTokenCount }),
    };
    const ending = { finish, usage, ...(tokens !== undefined && { tokens }) };
    if (this.#writer !== undefined) {
      this.#start(this.#writer);
      this.#feed.write(this.#writer.end(ending));
    } else {
      const reply = writeJsonWith(dialect.encodeReply({ start, parts, ...ending }), writtenText);
      this.#feed.begin({ status: 200, headers: jsonHeaders });
      this.#feed.write(reply);
    }
    this.#isDone = true;
    this.#feed.end();
  }

  fail(error: ClientError): void {
    if (this.#isDone) return;
    this.#isDone = true;
    if (this.#writer === undefined || !this.#isStarted) {
      this.#feed.refuse(error);
      return;
    }
    try {
      this.#feed.write(this.#writer.fail(error));
    } finally {
      this.#feed.end();
    }
  }

  close(): void {
    this.#cancelKeepAlive?.();
  }

  #start(writer: StreamWriter): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#feed.begin({ status: 200, headers: streamHeaders });
    this.#feed.write(writer.start());
  }

  #scheduleKeepAlive(): void {
    this.#cancelKeepAlive?.();
    this.#cancelKeepAlive = this.#clock.after(keepAliveMs, () => {
      const writer = this.#writer;
      if (writer === undefined || this.#isDone) return;
      this.#start(writer);
      this.#feed.write(writer.keepAlive());
      this.#scheduleKeepAlive();
    });
  }
}

const jsonHeaders = { "content-type": "application/json" };

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Buffering proxies would otherwise hold the stream back.
  "x-accel-buffering": "no",
};
