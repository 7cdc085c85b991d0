import { assertRequest } from "../../engine/check-request.ts";
import { checkGeneration } from "../../engine/check-sampled.ts";
import type { Engine, GenerateRequest, Generation } from "../../engine/engine.ts";
import { findOutputRule } from "../../engine/output-rule.ts";
import { attribute } from "../../episode/boundary.ts";
import { ownBug, RolloutError } from "../../errors.ts";
import { withDeadline } from "../../async/deadline.ts";
import { endedBy } from "../../async/ended-by.ts";
import type { Attempt } from "../../parser/tool-call-parser.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { TokenNotifier } from "../../run/policy/token-notifier.ts";
import { IncrementalDecoder } from "../../tokenizer/incremental-decoder.ts";
import type { ReplyEvent, ReplyFinish, ReplyPart } from "../conversation.ts";
import { TurnReader, type TurnToStream } from "./turn-reader.ts";

/** What sampling a reply takes. */
export interface ReplyToSample {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly request: GenerateRequest;
  readonly read: TurnToStream;
  /** Told of each event as soon as it can be released. */
  readonly onEvents: (events: readonly ReplyEvent[]) => void;
  /** Whether the client reads events as they come. Default true. */
  readonly isStreamed?: boolean;
  /** Aborted, the turn is given up, and the engine is told to stop. */
  readonly signal: AbortSignal;
  /** See `GenerateOptions.onHeld`. */
  readonly onHeld?: (isHeld: boolean) => void;
}

/** A sampled reply: the ids as the engine returned them, and what they say. */
export interface SampledReply {
  readonly generation: Generation;
  readonly parts: readonly ReplyPart[];
  readonly finish: ReplyFinish;
  /** How often each status occurred among the attempts to call a tool. */
  readonly attemptCounts: Readonly<Record<string, number>>;
  /** Whether calls were tried and none could be read. */
  readonly isFormatError: boolean;
  /** Ids that the model gave its calls, in their order. */
  readonly writtenIds: readonly (string | undefined)[];
  /** The number of calls that the client does not get, because it takes one alone. */
  readonly leftOutCallCount: number;
}

/**
 * Samples a turn and reads it as it comes. The generation that the engine returns at the end is the
 * truth; an engine that tells of nothing before gives everything then.
 *
 * @throws RolloutError as `Engine.generate()` does.
 * @throws the signal's reason.
 */
export async function sampleReply(options: ReplyToSample): Promise<SampledReply> {
  const { request } = options;
  const feed = new ReadingFeed(options);
  const generation = await askEngine(options, feed);
  if (generation.outputIds.length === 0) {
    const message = `Cannot sample ${request.requestId}: the engine sampled nothing`;
    throw new RolloutError("engine/bad-reply", message, { retryable: true });
  }
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

/**
 * Asks the engine, which may be anyone's: what it throws plainly is its own failure, and one that ignores its
 * signal is not waited for.
 */
async function askEngine(
  { engine, request, read, signal, onHeld, isStreamed = true }: ReplyToSample,
  feed: ReadingFeed,
): Promise<Generation> {
  assertRequest(request);
  const what = `sample ${request.requestId}`;
  const stopped = new AbortController();
  feed.onStopText = () => stopped.abort();
  // Where it is interrupted, a turn that is told of cannot begin anew.
  const listens = isStreamed || read.stops.length > 0 || findOutputRule(request) === undefined;
  const told = new TokenNotifier({
    onHeld,
    cutShort: stopped.signal,
    ...(listens && { onTokens: ({ tokenIds }) => feed.push(tokenIds) }),
  });
  const generate = async (ended: AbortSignal): Promise<Generation> => {
    try {
      return await engine.generate(request, { ...told.options, signal: ended });
    } catch (error) {
      if (!endedBy(stopped.signal, error)) throw error;
      // It hands over nothing that names its version.
      return told.toGeneration(request.requestId, "");
    }
  };
  const ask = async (ended: AbortSignal): Promise<Generation> =>
    checkGeneration(await generate(ended), request);
  try {
    const onLate = (): never => {
      throw ownBug("a wait without an end is never over");
    };
    return await withDeadline(ask, { ms: Infinity, signal, onLate });
  } catch (error) {
    signal.throwIfAborted();
    throw attribute(error, { party: "engine", what });
  } finally {
    told.mute();
  }
}

function writtenIds(
  parts: readonly ReplyPart[],
  attempts: readonly Attempt[],
): readonly (string | undefined)[] {
  const left = [...attempts];
  return parts
    .filter((part) => part.type === "call")
    .map(({ name, text }) => {
      const at = left.findIndex((each) => each.name === name && each.argumentsText === text);
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

/** Decodes and reads ids one piece after the other, while the engine goes on. */
class ReadingFeed {
  readonly reader: TurnReader;
  onStopText: () => void = () => {};
  readonly #options: ReplyToSample;
  readonly #text: IncrementalDecoder;
  readonly #stopIds: ReadonlySet<number>;
  readonly #told: number[] = [];
  #work: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: ReplyToSample) {
    this.#options = options;
    this.reader = new TurnReader(options.read);
    this.#text = new IncrementalDecoder(options.renderer.codec);
    this.#stopIds = new Set(options.request.stopTokenIds);
  }

  push(ids: readonly number[]): void {
    for (const id of ids) this.#told.push(id);
    const spoken = ids.filter((id) => !this.#stopIds.has(id));
    this.#work = this.#work.then(async () => {
      if (this.#failure !== undefined || this.reader.stopText !== undefined) return;
      try {
        this.#release(this.reader.push(await this.#text.push(spoken)));
        if (this.reader.stopText !== undefined) this.onStopText();
      } catch (error) {
        this.#failure = { error };
      }
    });
  }

  /** Reads what the engine did not tell of before, and ends the turn. */
  async finish({ outputIds, finish }: Generation): Promise<void> {
    const known = this.#told.every((id, place) => outputIds[place] === id);
    if (!known) {
      throw new RolloutError(
        "engine/bad-reply",
        "Cannot use the turn: the ids that the engine told of are not those that it returned",
      );
    }
    this.push(outputIds.slice(this.#told.length));
    await this.#work;
    if (this.#failure !== undefined) throw this.#failure.error;
    const last = outputIds.at(-1);
    const closedBy =
      last !== undefined && this.#stopIds.has(last)
        ? this.#options.renderer.codec.tokenOf(last)
        : undefined;
    this.#release(this.reader.push(await this.#text.end()));
    this.#release(
      this.reader.end({ finish: finish.type, ...(closedBy !== undefined && { closedBy }) }),
    );
  }

  #release(events: readonly ReplyEvent[]): void {
    if (events.length > 0) this.#options.onEvents(events);
  }
}
