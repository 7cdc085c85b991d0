import { shortJson } from "../../secrets/shorten.ts";
import { RolloutError, type Party } from "../../errors.ts";
import type { PlaybackStop } from "../../outside.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { AnswerOrder } from "./answer-order.ts";
import type { CallState } from "./call-state.ts";
import type { EpisodeTime } from "./episode-time.ts";
import { describeInput, hashOf, openOutcome, type Inputs, type Outcome } from "./input.ts";
import type { AnswerTerms, InputSource, OutsideCall, Sampled } from "./input-source.ts";
import { PlaybackState } from "./playback-state.ts";
import { RecordedCalls } from "./recorded-calls.ts";
import { RecordedTurns } from "./recorded-turns.ts";
import { RecordingCursor, type Answer } from "./recording-cursor.ts";

/** The parts that recorded inputs share with live inputs, and the live inputs themselves. */
interface RecordedInputsParts {
  readonly recording: Inputs;
  /** The inputs after the recording's end. */
  readonly next: InputSource & { readonly stop?: () => void };
  /** True if the episode must end with the recording. */
  readonly isReplay: boolean;
  /** True if the world scores the episode again instead of using the recorded score. */
  readonly isRescored: boolean;
  readonly time: EpisodeTime;
  readonly calls: CallState;
  readonly order: AnswerOrder;
  readonly redactor: Pick<Redactor, "thrown" | "without">;
}

/**
 * Takes inputs from a recording until it ends, then from `next`. Repeatable calls are made again, and their answers
 * compared with the recorded ones. The first difference ends the playback with a `ReplayDivergence`.
 */
export class RecordedInputs implements InputSource {
  readonly isReplay: boolean;
  readonly #parts: RecordedInputsParts;
  readonly #cursor: RecordingCursor;
  readonly #recordedCalls: RecordedCalls;
  readonly #recordedTurns: RecordedTurns;
  readonly #state: PlaybackState;

  constructor(parts: RecordedInputsParts) {
    const { calls, isReplay, isRescored, order, recording } = parts;
    this.isReplay = isReplay;
    this.#parts = parts;
    this.#cursor = new RecordingCursor(recording);
    this.#state = new PlaybackState(order);
    this.#recordedCalls = new RecordedCalls({ cursor: this.#cursor, calls, order, isRescored });
    this.#recordedTurns = new RecordedTurns({
      cursor: this.#cursor,
      state: this.#state,
      nextPromptHash: recording.nextPromptHash,
    });
  }

  /** True while recorded inputs are left. */
  get isPlaying(): boolean {
    return !this.#cursor.isAtEnd;
  }

  /** True if this error ended the playback. */
  owns(thrown: unknown): boolean {
    return this.#state.owns(thrown);
  }

  /** True if the error comes from the recording, and the world cancelled a request to the user there. */
  isCancellation(thrown: unknown): boolean {
    return this.#recordedCalls.isCancellation(thrown);
  }

  now(): number {
    const recorded = this.#cursor.takeTime();
    if (recorded !== undefined) {
      this.#parts.time.readingCount += 1;
      return recorded;
    }
    if (this.isReplay) throw this.end("the recording ends where the time is asked for");
    return this.#parts.next.now();
  }

  isLate(test: () => boolean): boolean {
    if (!this.isPlaying) return this.#parts.next.isLate(test);
    if (this.#cursor.next?.type !== "late") return false;
    this.#cursor.advance();
    return true;
  }

  generation(promptHash: string, sample: () => Promise<Sampled>): Sampled | Promise<Sampled> {
    this.#state.throwIfStopped();
    if (!this.isPlaying) {
      this.#goLive("the policy is asked for a turn");
      return this.#parts.next.generation(promptHash, sample);
    }
    return this.#recordedTurns.take(promptHash);
  }

  async call<Result>(call: OutsideCall<Result>): Promise<Result> {
    const { calls, next } = this.#parts;
    const { what, index, bound } = call;
    const found = this.#cursor.findCall(what, index, calls.isDisposing);
    if (found === undefined) {
      if (this.#cursor.hasAnswerAhead) {
        // The call may not have ended before.
        if (calls.isDisposing) throw notRecorded(what);
        throw this.diverge(calls.caller, `${what} is called, which was not called before`);
      }
      this.#goLive(`${what} is called`);
      return await next.call(call);
    }
    if (found.input.what !== what) {
      if (calls.isDisposing) throw notRecorded(what);
      throw this.diverge(calls.caller, `${what} is called where ${found.input.what} was`);
    }
    this.#cursor.skipMadeCalls();
    this.#state.bind(bound);
    return (await this.#recordedCalls.result(found)) as Result;
  }

  answer<Value>(what: string, work: () => Promise<Value>, terms: AnswerTerms): Promise<Value> {
    if (this.isPlaying) return this.#answerFromRecording(what, work, terms);
    try {
      this.#state.throwIfStopped();
      this.#goLive(what);
    } catch (stop) {
      return Promise.reject(stop);
    }
    return this.#parts.next.answer(what, work, terms);
  }

  async #answerFromRecording<Value>(
    what: string,
    work: () => Promise<Value>,
    terms: AnswerTerms,
  ): Promise<Value> {
    this.#state.throwIfStopped();
    this.#recordedCalls.startAnswer(terms.limitMs);
    const { calls, next } = this.#parts;
    const answer = this.#findAnswer(what);
    // The recording ends during this call: its first calls through `outside` may be recorded.
    if (answer === undefined) return await next.answer(what, () => this.#state.orStop(work), terms);
    calls.enter(what);
    try {
      return await this.#takeAnswer(answer, work, terms);
    } finally {
      calls.exit();
    }
  }

  /** Takes an answer from the recording, or computes it again and compares the two. */
  async #takeAnswer<Value>(
    answer: Answer,
    work: () => Promise<Value>,
    { repeatable, bound }: AnswerTerms,
  ): Promise<Value> {
    const { outcome, what } = answer;
    const { isRescored, redactor, calls } = this.#parts;
    if (what === "score" && isRescored) {
      const value = redactor.without(await this.#workAgain(work));
      this.#pass(answer);
      return value;
    }
    if (!repeatable) this.#state.bind(bound);
    if (!("hash" in outcome)) {
      this.#pass(answer);
      return openOutcome(outcome as Outcome<Value>);
    }
    const value = redactor.without(await this.#workAgain(work));
    const missing = this.#cursor.next;
    if (missing?.type === "outside") throw this.#noLongerCalled(what, missing.what);
    this.#cursor.advance();
    if (hashOf(value) === outcome.hash) return value;
    throw this.diverge(calls.answerer, `${what} brings another answer: ${shortJson(value, 200)}`);
  }

  /**
   * Makes a repeatable call again. A failure now contradicts the recording, which has an answer: the rest of the
   * recording is dropped, and the failure ends the episode.
   */
  async #workAgain<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await this.#state.orStop(work);
    } catch (thrown) {
      this.#state.throwIfStopped();
      const error = this.#parts.redactor.thrown(thrown);
      if (!(error instanceof RolloutError)) throw error;
      // A tool's own time limit may end before a missing call is noticed.
      if (error.code.endsWith("/timeout")) this.#requireNoneMissing();
      this.leave();
      throw error;
    }
  }

  #requireNoneMissing(): void {
    const { next } = this.#cursor;
    const { calls, order } = this.#parts;
    if (!order.isWaiting || next?.type !== "outside") return;
    throw this.#noLongerCalled(calls.current, next.what);
  }

  #noLongerCalled(what: string | undefined, missing: string): PlaybackStop {
    return this.diverge(this.#parts.calls.answerer, `${what} no longer calls ${missing}`);
  }

  #pass(answer: Answer): void {
    const { calls } = this.#parts;
    calls.startedCount = this.#cursor.pass(answer, calls.startedCount);
  }

  /**
   * Finds the recorded answer of a call that starts now; `undefined` if the recording ends before this call.
   *
   * @throws ReplayDivergence if something else was recorded here. The agent decides on the next call.
   */
  #findAnswer(what: string): Answer | undefined {
    const input = this.#cursor.nextEvent;
    if (input === undefined || (input.type === "answer" && input.what === what)) return input;
    throw this.diverge(
      "agent",
      `the episode reaches ${what} where it reached ${describeInput(input)}`,
    );
  }

  /**
   * Compares the prompt with the recorded one.
   *
   * @throws ReplayDivergence if the policy gets another prompt than the recorded one.
   */
  requirePrompt(promptHash: string): void {
    this.#recordedTurns.requirePrompt(promptHash);
  }

  /**
   * Compares a fork's first own prompt with the recorded one.
   *
   * @throws ReplayDivergence if a fork's first own prompt differs from the original's prompt at that place.
   */
  requireNextPrompt(promptHash: string): void {
    this.#recordedTurns.requireNextPrompt(promptHash);
  }

  /**
   * Drops the rest of the recording, and records nothing from now on. So no later start can continue the episode from
   * here. Does nothing in a replay.
   */
  leave(): void {
    if (this.isReplay) return;
    this.#cursor.skipToEnd();
    this.#parts.next.stop?.();
    this.#state.leave();
  }

  /**
   * Drops the rest of the recording if a failure ends the episode here, unless the recorded episode also ended here. It
   * did if the next recorded answer is that of `what`, the last call of every episode.
   *
   * @throws ReplayDivergence in a replay.
   */
  leaveUnlessNext(what: string, failure: RolloutError): void {
    const next = this.#cursor.nextEvent;
    if (next === undefined || (next.type === "answer" && next.what === what)) return;
    if (this.isReplay) {
      const { party, code, message } = failure;
      throw this.diverge(party, `the episode fails where it continued (${code}): ${message}`);
    }
    this.leave();
  }

  /** Ends the playback because the episode differs from its recording. Returns the error to throw. */
  diverge(party: Party, message: string): PlaybackStop {
    return this.#state.diverge(party, message);
  }

  /** Ends the playback because the recording ends before the episode. Returns the error to throw. */
  end(message: string): PlaybackStop {
    return this.#state.end(message);
  }

  /**
   * Switches from the recording to live inputs.
   *
   * @param what - The call that the recording lacks, such as "the policy is asked for a turn".
   * @throws RecordingEnd in a replay, or if a part of the episode could not be restored from the recording.
   */
  #goLive(what: string): void {
    if (this.isReplay) throw this.end(`the recording ends where ${what}`);
    this.#state.requireUnbound();
    this.#parts.time.start();
  }
}

/** Returns the error for a call that the world did not make when it was disposed of before. */
function notRecorded(what: string): Error {
  return new Error(`Cannot call ${what}: the recording does not say what it brought`);
}
