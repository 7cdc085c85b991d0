import type { Engine, SamplingConstraint, SamplingParameters } from "../engine/engine.ts";
import { RolloutError, UsageError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import { startDeadline } from "../async/deadline.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { ClientError } from "./client-error.ts";
import type { AskedTurn, ReplyEvent, ReplyStart, ReplyToken } from "./conversation.ts";
import type { GatewayDialect, StreamWriter } from "./dialects/dialect.ts";
import type { GatewayCounters } from "./gateway-counters.ts";
import type { MintId } from "./mint-id.ts";
import type { GatewayTurn } from "./session/gateway-turn.ts";
import type { ReplyFeed } from "./session/reply-feed.ts";
import type { SessionLimits } from "./session/session-limits.ts";
import { toTemplateTurn, type GatewaySession, type SessionSetback } from "./session/session.ts";
import type { Placement } from "./tree/session-tree.ts";
import { toSentTurn, type TurnNode } from "./tree/turn-node.ts";
import type { BuiltPrompt, PromptBuilder } from "./turn/prompt-builder.ts";
import { replyTokens } from "./turn/reply-tokens.ts";
import { sampleReply, type SampledReply } from "./turn/sample-reply.ts";
import { unkeptWishes, wantedForm, type WantedForm } from "./turn/turn-constraint.ts";
import type { ReplyFormats } from "./turn/turn-reader.ts";
import { writeJsonWith } from "../environment/plain-text.ts";
import { writtenText } from "../python/json/exact-json.ts";

/** What turns are answered with. */
export interface TurnServices {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly builder: PromptBuilder;
  readonly formats: ReplyFormats;
  readonly sampling: SamplingParameters;
  /** Whose sampling parameters count: the gateway's, or the client's where it gives any. */
  readonly clientSampling: "pin" | "honour";
  /** The fate of tools of servers, tool choices, text formats and other wishes that nothing keeps. */
  readonly constraints: "ignore" | "refuse";
  /** Names of the model whose turns are trained; absent: all. */
  readonly policyModels?: readonly string[];
  readonly limits: SessionLimits;
  readonly counters: GatewayCounters;
  readonly mint: MintId;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Told of an outage in full; the client learns its code alone. */
  readonly onFailure: (error: RolloutError | UsageError) => void;
  /** Resolves when turns may be sampled: not while weights are exchanged. */
  readonly whenOpen: (signal: AbortSignal) => Promise<void>;
  /** Resolves once the turn cannot be lost any more. */
  readonly journal: (
    session: GatewaySession,
    placement: Placement<GatewayTurn>,
    node: TurnNode<GatewayTurn>,
    tools: AskedTurn["tools"],
  ) => Promise<void>;
}

/** One request of a client's. */
export interface ClientRequest {
  readonly dialect: GatewayDialect;
  readonly asked: AskedTurn;
  /** Names that the client gave its conversation. */
  readonly labels: Readonly<Record<string, string>>;
  /** Aborted when nobody waits for the reply any more. */
  readonly signal: AbortSignal;
}

/** While nothing can be released, the client hears something this often, in milliseconds. */
const keepAliveMs = 10_000;

/**
 * Answers one request: finds the turn that it continues, samples the next one, and writes it into the
 * feed as it comes. Never rejects: whatever goes wrong, the client is told.
 *
 * @returns the turn; `undefined` where there is none.
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

/** What the agent can do nothing about, but for a conversation that it may shorten. */
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

/** A conversation's place, and the prompt that it is asked with. */
export async function placeAndRender(
  { builder }: Pick<TurnServices, "builder">,
  session: GatewaySession,
  asked: AskedTurn,
): Promise<{ readonly placement: Placement<GatewayTurn>; readonly built: BuiltPrompt }> {
  session.requireFits(asked);
  const placement = session.tree.place(asked);
  const { tools } = asked;
  const { callIds } = session.memory;
  if (placement.parent === undefined) {
    return { placement, built: await builder.begin(placement.environment, tools, callIds) };
  }
  const built = await builder.continue(placement.parent, placement.environment, tools, callIds);
  if (!("cause" in built)) return { placement, built };
  const root = session.tree.asRoot(asked, built.cause);
  return { placement: root, built: await builder.begin(root.environment, tools, callIds) };
}

async function sampleAndWrite(
  services: TurnServices,
  session: GatewaySession,
  request: ClientRequest,
  output: ReplyOutput,
): Promise<TurnNode<GatewayTurn>> {
  const { engine, renderer, formats, mint, clock, counters } = services;
  const { asked, dialect } = request;
  session.requireRoom();
  counters.ignored([...asked.ignoredFields, ...pinnedFields(services, asked)]);
  for (const { what, why } of unkeptWishes(asked)) leaveFree(services, what, why);
  const { placement, built } = await placeAndRender(services, session, asked);
  const form = chooseForm(services, asked, built);
  const start: ReplyStart = {
    id: mint(dialect.idPrefixes.reply),
    createdAtMs: services.now(),
    promptTokenCount: built.ids.length,
    asked,
  };
  const maxNewTokens = session.roomBehind(built.ids.length, asked);
  output.prepare(dialect.createWriter(start));
  await services.whenOpen(request.signal);
  const sampling = session.seeded(chooseSampling(services, asked));
  const startedAt = clock.now();
  using deadline = startDeadline({
    ms: services.limits.engineTimeoutMs,
    parents: [request.signal, session.stop.signal],
    clock,
  });
  const sampled = sampleInForm(services, form, async (held) =>
    sampleReply({
      engine,
      renderer,
      request: {
        // The next prompt is made of these, and the engine may be anyone's.
        promptIds: [...built.ids],
        sampling,
        maxNewTokens,
        stopTokenIds: renderer.stopTokenIds,
        ...(held !== undefined && { constraint: held }),
        vocabularySize: renderer.codec.vocabularySize,
        requestId: session.nextRequestId(),
        sessionId: session.identity.sessionId,
      },
      read: {
        formats,
        tools: asked.toolChoice.type === "none" ? [] : asked.tools,
        callForms: asked.callForms,
        parallelCalls: asked.parallelCalls,
        reasoningOpened: built.reasoningOpened,
        stops: asked.stop,
        ids: { mint, callPrefix: dialect.idPrefixes.call },
      },
      onEvents: (events) => output.write(events),
      isStreamed: asked.isStreamed,
      signal: deadline.signal,
      onHeld: (isHeld) => (isHeld ? deadline.pause() : deadline.resume()),
    }),
  );
  const { reply, constraint } = await sampled.catch((error: unknown) => {
    const isLate = deadline.expired && error === deadline.signal.reason;
    throw isLate ? tookTooLong(services.limits) : error;
  });
  const record = {
    ...toRecord(services, { request, placement, built, start, reply, sampling }),
    ...(constraint !== undefined && { constraint }),
  };
  const engineMs = clock.now() - startedAt;
  const turn = toSentTurn(reply.parts);
  const depth = session.tree.nodes.length;
  const message = toTemplateTurn(turn, { depth, writtenIds: reply.writtenIds });
  const node = session.enter(placement, {
    turn,
    record: { ...record, message, engineMs },
    isDelivered: false,
  });
  services.builder.keep(node, built.ids);
  counters.turn(placement.cause, placement.notes);
  counters.leftOutCalls(reply.leftOutCallCount);
  await services.journal(session, placement, node, asked.tools);
  const tokens = asked.includesLogprobs ? await replyTokens(renderer, reply) : undefined;
  output.finish(dialect, start, reply, tokens);
  return node;
}

/** The time that is over is the engine's; a client that waits no longer has a signal of its own. */
function tookTooLong({ engineTimeoutMs }: Pick<SessionLimits, "engineTimeoutMs">): RolloutError {
  const message = `Cannot sample a turn: the engine took longer than ${engineTimeoutMs} ms`;
  return new RolloutError("engine/timeout", message, { retryable: true });
}

function chooseSampling(
  { sampling, clientSampling }: TurnServices,
  asked: AskedTurn,
): SamplingParameters {
  return clientSampling === "honour" ? { ...sampling, ...asked.sampling } : sampling;
}

/** Sampling parameters of a request that change nothing, because the gateway's own count. */
function pinnedFields({ clientSampling }: TurnServices, { sampling }: AskedTurn): string[] {
  if (clientSampling === "honour") return [];
  return Object.keys(sampling).map((name) =>
    name.replaceAll(/[A-Z]/g, (at) => `_${at.toLowerCase()}`),
  );
}

/** @throws ClientError `invalid` for what no engine can enforce, where that is to be refused. */
function chooseForm(
  services: TurnServices,
  asked: AskedTurn,
  { reasoningOpened }: BuiltPrompt,
): WantedForm {
  const parser = services.formats.parser?.name;
  const form = wantedForm(asked, { parser, reasoningOpened });
  if (form.type === "unenforceable") leaveFree(services, form.what, form.why);
  return form;
}

/** @throws ClientError `invalid` where what is not enforced is to be refused. */
function leaveFree({ constraints, counters }: TurnServices, what: string, why: string): void {
  counters.unenforced(what);
  if (constraints === "ignore") return;
  throw new ClientError("invalid", `Cannot enforce ${what}: ${why}`);
}

/**
 * Samples a turn in the form that is wanted, where the engine knows how.
 *
 * @throws ClientError `invalid` where it does not, and that is to be refused.
 */
async function sampleInForm(
  services: TurnServices,
  form: WantedForm,
  sample: (constraint?: SamplingConstraint) => Promise<SampledReply>,
): Promise<{
  readonly reply: SampledReply;
  readonly constraint?: SamplingConstraint["type"];
}> {
  if (form.type !== "held") return { reply: await sample() };
  try {
    return { reply: await sample(form.constraint), constraint: form.constraint.type };
  } catch (error) {
    // Nothing is sampled of a request that the engine does not take.
    if (!(error instanceof RolloutError) || error.code !== "engine/bad-request") throw error;
    services.onFailure(error);
    leaveFree(services, form.what, "the engine does not accept this form");
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
  const { asked, dialect, labels } = request;
  return {
    generation: reply.generation,
    prompt: built.prompt,
    isTrainable: policyModels === undefined || policyModels.includes(asked.model),
    shown: built.shown,
    replyId: start.id,
    dialect: dialect.name,
    model: asked.model,
    environment: placement.environment,
    hasInstructions: asked.hasInstructions === true && placement.parent === undefined,
    sampling,
    finish: reply.finish,
    notes: placement.notes,
    attemptCounts: reply.attemptCounts,
    isFormatError: reply.isFormatError,
    labels,
    promptTokenCount: built.ids.length,
    startedAtMs: Math.min(start.createdAtMs, now()),
  };
}

/**
 * Says to a client what went wrong. The client is an agent with a shell, as a rule: it learns no address, no
 * path and no id of ours, only the failure's code.
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
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return new ClientError("unavailable", "The engine took too long", { cause: error });
  }
  const message = "The gateway failed; its own output says why";
  return new ClientError("internal", message, { cause: error });
}

/** What of a reply goes to the client when. */
class ReplyOutput {
  readonly #isStreamed: boolean;
  readonly #feed: ReplyFeed;
  readonly #clock: Clock;
  #writer: StreamWriter | undefined;
  #isBegun = false;
  #isOver = false;
  #callOff: (() => void) | undefined;

  constructor({ asked }: ClientRequest, feed: ReplyFeed, clock: Clock) {
    this.#isStreamed = asked.isStreamed;
    this.#feed = feed;
    this.#clock = clock;
  }

  /** From here on a streamed reply may begin: with the first event, or because that takes long. */
  prepare(writer: StreamWriter): void {
    if (!this.#isStreamed) return;
    this.#writer = writer;
    this.#stayAwake();
  }

  write(events: readonly ReplyEvent[]): void {
    const writer = this.#writer;
    if (writer === undefined || this.#isOver) return;
    this.#begin(writer);
    this.#feed.write(events.map((event) => writer.write(event)).join(""));
    this.#stayAwake();
  }

  finish(
    dialect: GatewayDialect,
    start: ReplyStart,
    { parts, finish, generation }: SampledReply,
    tokens: readonly ReplyToken[] | undefined,
  ): void {
    const usage = {
      promptTokenCount: start.promptTokenCount,
      cachedTokenCount: Math.min(generation.cachedTokenCount ?? 0, start.promptTokenCount),
      sampledTokenCount: generation.outputIds.length,
    };
    const ending = { finish, usage, ...(tokens !== undefined && { tokens }) };
    if (this.#writer !== undefined) {
      this.#begin(this.#writer);
      this.#feed.write(this.#writer.end(ending));
    } else {
      const reply = writeJsonWith(dialect.encodeReply({ start, parts, ...ending }), writtenText);
      this.#feed.begin({ status: 200, headers: jsonHeaders });
      this.#feed.write(reply);
    }
    this.#isOver = true;
    this.#feed.end();
  }

  fail(error: ClientError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#writer === undefined || !this.#isBegun) {
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
    this.#callOff?.();
  }

  #begin(writer: StreamWriter): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#feed.begin({ status: 200, headers: streamHeaders });
    this.#feed.write(writer.start());
  }

  #stayAwake(): void {
    this.#callOff?.();
    this.#callOff = this.#clock.after(keepAliveMs, () => {
      const writer = this.#writer;
      if (writer === undefined || this.#isOver) return;
      this.#begin(writer);
      this.#feed.write(writer.keepAlive());
      this.#stayAwake();
    });
  }
}

const jsonHeaders = { "content-type": "application/json" };

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Proxies that collect a reply before they pass it on would make a stream of it no more.
  "x-accel-buffering": "no",
};
