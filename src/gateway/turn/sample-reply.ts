import type { ColumnStore } from "../../columns/column-store.ts";
import { assertRequest } from "../../engine/check-request.ts";
import type { Engine, GenerateRequest, Generation } from "../../engine/engine.ts";
import { findOutputRule } from "../../engine/output-rule.ts";
import type { CallWatch } from "../../episode/turn/call-watch.ts";
import { splitStop } from "../../episode/turn/record-turn.ts";
import { emptyReply, requestTurn } from "../../episode/turn/request-turn.ts";
import type { Attempt } from "../../../packages/tool-parsers/src/tool-call-parser.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { escapeHalves, toWellFormed } from "../../text/well-formed.ts";
import { IncrementalDecoder } from "../../tokenizer/incremental-decoder.ts";
import type { ReplyEvent, ReplyFinish, ReplyPart } from "../conversation.ts";
import { TurnReader, type TurnToStream } from "./turn-reader.ts";

/** The inputs of `sampleReply()`. */
export interface ReplyToSample {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly request: GenerateRequest;
  readonly read: TurnToStream;
  /** Called with events as soon as they can be sent. */
  readonly onEvents: (events: readonly ReplyEvent[]) => void;
  /** True if the client reads events while the turn is sampled. Default true. */
  readonly isStreamed?: boolean;
  /** The time limits of the call. Its caller aborts the turn and stops the engine. */
  readonly watch: CallWatch;
  /** Keeps the bytes of side columns. Default: in memory. */
  readonly columnStore?: ColumnStore | undefined;
  /** Time limit of the engine in milliseconds. The time for which it is paused, as for new weights, does not count. */
  readonly engineTimeoutMs: number;
}

/** A sampled reply: the engine's ids and the parts that they decode to. */
export interface SampledReply {
  readonly generation: Generation;
  readonly parts: readonly ReplyPart[];
  readonly finish: ReplyFinish;
  /** Number of attempts to call a tool, by status. */
  readonly attemptCounts: Readonly<Record<string, number>>;
  /** True if the turn attempted calls and none could be read. */
  readonly isFormatError: boolean;
  /** Ids that the model wrote for its calls, in order. */
  readonly writtenIds: readonly (string | undefined)[];
  /** Number of calls that are withheld because the client accepts only one call. */
  readonly leftOutCallCount: number;
}

/**
 * Samples a turn and reads it while tokens arrive. The engine's final generation is authoritative.
 * If the engine reports no tokens before it, all events come at the end.
 *
 * @throws RolloutError with party `engine`.
 * @throws the watch's reason if its caller aborts.
 */
export async function sampleReply(options: ReplyToSample): Promise<SampledReply> {
  const feed = new ReadingFeed(options);
  const generation = await askEngine(options, feed);
  await feed.finish(generation);
  const { reader } = feed;
  const attemptCounts: Record<string, number> = {};
  for (const { status } of reader.attempts) {
    attemptCounts[status] = (attemptCounts[status] ?? 0) + 1;
  }
  const { parts, stopText } = reader;
  return {
    generation,
    parts,
    finish: finishOf(generation, parts, stopText),
    attemptCounts,
    isFormatError:
      reader.attempts.length > 0 && reader.attempts.every(({ status }) => status !== "ok"),
    writtenIds: writtenIds(parts, reader.attempts),
    leftOutCallCount: reader.leftOutCount,
  };
}

/** Requests the turn, and reports its tokens to the feed. A stop text ends it early. */
async function askEngine(
  { engine, request, read, watch, columnStore, engineTimeoutMs, isStreamed = true }: ReplyToSample,
  feed: ReadingFeed,
): Promise<Generation> {
  assertRequest(request);
  const stopped = new AbortController();
  feed.onStopText = () => stopped.abort();
  // Without a listener, an interrupted turn can be sampled again from its start.
  const listens = isStreamed || read.stops.length > 0 || findOutputRule(request) === undefined;
  const what = `sample turn ${request.requestId}`;
  const generation = await requestTurn(engine, request, {
    watch,
    boundary: { party: "engine", what, timeoutMs: engineTimeoutMs },
    cutShort: stopped.signal,
    columnStore,
    onHeld: (isHeld) => (isHeld ? watch.pause() : watch.goOn()),
    ...(listens && { onTokens: ({ tokenIds }) => feed.push(tokenIds) }),
  });
  if (generation.outputIds.length === 0) throw emptyReply(what);
  return generation;
}

function writtenIds(
  parts: readonly ReplyPart[],
  attempts: readonly Attempt[],
): readonly (string | undefined)[] {
  const left = attempts.map(({ id, name, argumentsText }) => {
    return { id, name: toWellFormed(name ?? ""), text: escapeHalves(argumentsText ?? "") };
  });
  return parts
    .filter((part) => part.type === "call")
    .map(({ name, text }) => {
      const at = left.findIndex((each) => each.name === name && each.text === text);
      return at === -1 ? undefined : left.splice(at, 1)[0]?.id;
    });
}

function finishOf(
  { finish }: Generation,
  parts: readonly ReplyPart[],
  stopText: string | undefined,
): ReplyFinish {
  if (stopText !== undefined) return { type: "stop-text", text: stopText };
  if (finish.type === "length") return { type: "length" };
  return { type: parts.some(({ type }) => type === "call") ? "calls" : "stop" };
}

/** Decodes and reads ids in order while the engine samples. */
class ReadingFeed {
  readonly reader: TurnReader;
  onStopText: () => void = () => {};
  readonly #options: ReplyToSample;
  readonly #text: IncrementalDecoder;
  readonly #stopIds: ReadonlySet<number>;
  #reportedCount = 0;
  #work: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: ReplyToSample) {
    this.#options = options;
    this.reader = new TurnReader(options.read);
    this.#text = new IncrementalDecoder(options.renderer.codec);
    this.#stopIds = new Set(options.request.stopTokenIds);
  }

  push(ids: readonly number[]): void {
    this.#reportedCount += ids.length;
    const textIds = ids.filter((id) => !this.#stopIds.has(id));
    this.#work = this.#work.then(async () => {
      if (this.#failure !== undefined || this.reader.stopText !== undefined) return;
      try {
        this.#release(this.reader.push(await this.#text.push(textIds)));
        if (this.reader.stopText !== undefined) this.onStopText();
      } catch (error) {
        this.#failure = { error };
      }
    });
  }

  /** Reads the ids that the engine has not reported before, and ends the turn. */
  async finish(generation: Generation): Promise<void> {
    const { outputIds, finish } = generation;
    this.push(outputIds.slice(this.#reportedCount));
    await this.#work;
    if (this.#failure !== undefined) throw this.#failure.error;
    const { stopText: closedBy } = splitStop(this.#options.renderer, generation);
    this.#release(this.reader.push(await this.#text.end()));
    this.#release(this.reader.end({ finish: finish.type, closedBy }));
  }

  #release(events: readonly ReplyEvent[]): void {
    if (events.length > 0) this.#options.onEvents(events);
  }
}
