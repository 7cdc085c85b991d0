import { hash } from "node:crypto";
import { RolloutError, describeError, type Party } from "../../errors.ts";
import { plainCopy } from "../../values/plain-copy.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { whyNotJson } from "../../json/why-not-json.ts";
import type { Generation } from "../../engine/engine.ts";
import { endedBy } from "../../async/ended-by.ts";
import { safeCutIndex, type Redactor } from "../../secrets/redactor.ts";
import { OutsideMisuse, PlaybackStop, type Outside } from "../../outside.ts";
import { AnswerOrder } from "./answer-order.ts";
import { describe } from "../check/foreign-value.ts";
import {
  endOf,
  fromRecordedError,
  toRecordedError,
  type Input,
  type Inputs,
  type Outcome,
} from "./input.ts";

/** What the policy was found to have sampled, and whether the episode's time was over by then. */
export interface Sampled {
  readonly generation: Generation;
  readonly isLate: boolean;
  /** Interrupted from outside: sampling goes on behind these ids. */
  readonly isPartial?: true;
}

/** How inputs are played and recorded. */
export interface InputPlayerOptions {
  /** Answers that are there already; they come first. Default none. */
  readonly past?: Inputs;
  /**
   * What happens where they end: the episode goes on live, or, with `replay`, a `RecordingEnd` is thrown.
   * Default `live`.
   */
  readonly atEnd?: "live" | "replay";
  /** Has the world score the episode anew, whatever the recorded score was. Default false. */
  readonly scoreAnew?: boolean;
  /**
   * Takes secrets out of what comes in, before the episode sees it: so it sees the same when it is played
   * again, and no secret is in the ids that are sent to the policy. Ids and logprobs stay. Default: none
   * are known.
   */
  readonly redactor?: Pick<Redactor, "thrown" | "without">;
  /** Told of new inputs, some at a time; absent: nothing is recorded. */
  readonly onInputs?: (inputs: Inputs) => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, "after">;
  /** What the user is asked for by the world that is asked. Default: nothing. */
  readonly userAsked?: () => { readonly isOver: boolean; readonly signal: AbortSignal } | undefined;
  /** Told once where the recording is over and the episode's time goes on behind it. */
  readonly onLive?: () => void;
}

/** The episode that is played again is not the one that was recorded. */
export class ReplayDivergence extends PlaybackStop {
  override readonly name = "ReplayDivergence";
  /** Who did otherwise than before, as far as that can be told. */
  readonly party: Party;

  constructor(party: Party, message: string) {
    super(message);
    this.party = party;
  }
}

/** The recording ends before the episode does. */
export class RecordingEnd extends PlaybackStop {
  override readonly name = "RecordingEnd";
}

/**
 * Hands an episode its inputs: those of a recording first, each in the place where it was taken, then
 * live ones, which it records. What is played again is compared with what was recorded, so that the
 * first place where the two part is known.
 */
export class InputPlayer {
  readonly #past: readonly Input[];
  readonly #times: readonly number[];
  /** How far its time has gone in the past. */
  readonly #pastEndMs: number | undefined;
  readonly #nextPromptHash: string | undefined;
  readonly #isReplay: boolean;
  readonly #isScoredAnew: boolean;
  #onInputs: ((inputs: Inputs) => void) | undefined;
  readonly #now: () => number;
  readonly #userAsked: NonNullable<InputPlayerOptions["userAsked"]>;
  readonly #onLive: () => void;
  readonly #redactor: InputPlayerOptions["redactor"];
  /** Of the next input of the past. */
  #place = 0;
  #timePlace = 0;
  /** Of the clock, so far. */
  #readings = 0;
  /** Calls through `outside` that have begun, those included that were passed over. */
  #outsideCount = 0;
  /** What is recorded of a call whose index is lower answers nobody who is still waited for. */
  #passedCount = 0;
  /** How long the answer may take that is under way; before there is one, a user is opened. */
  #limitMs = 2 * missingMs;
  /** Of the first input that was waited for in vain by what was recorded behind it, for the answer under way. */
  #missedPlace: number | undefined;
  /** How many calls were waited for in vain, for the answer under way: each is waited for once. */
  #missedCount = 0;
  readonly #answerOrder: AnswerOrder;
  /** The call through `outside` whose work is being begun. */
  #begins: string | undefined;
  /** Added to live readings, so that time goes on where the recording left it. */
  #offsetMs: number | undefined;
  /** For how long its time stood still. */
  #heldMs = 0;
  /** Since when it does, where it does. */
  #heldSinceMs: number | undefined;
  /** Why the episode cannot go on live. */
  #bound: string | undefined;
  /** The call to the world that is under way, or was last; absent before there is one. */
  #asked: string | undefined;
  /** How many there are for whom somebody may call what is outside. */
  #underWay = 0;
  /** The world is being cleared away: nothing that it calls for that ends a playback. */
  #isClearing = false;
  /** What was called all the same when there was none. */
  #stray: { readonly party: Party; readonly why: string } | undefined;
  /** What ended the playback. Whoever caught it on the way is not gone on with. */
  #stop: PlaybackStop | undefined;
  /** What was thrown once more of that with which the world's giving up had ended a wait. */
  #givenUp: WeakSet<Error> | undefined;
  /** Something was done since the last time that is not to be done again. */
  #isWorkNew = false;
  #newInputs: Input[] = [];
  #newTimes: number[] = [];

  constructor(options: InputPlayerOptions) {
    const { past, atEnd = "live", onInputs, now, redactor, scoreAnew = false } = options;
    const { clock = systemClock, userAsked = () => undefined, onLive = () => {} } = options;
    this.#past = past?.inputs ?? [];
    this.#times = past?.times ?? [];
    this.#pastEndMs = past && endOf(past);
    this.#nextPromptHash = past?.nextPromptHash;
    this.#isReplay = atEnd === "replay";
    this.#isScoredAnew = scoreAnew;
    this.#onInputs = onInputs;
    this.#now = now;
    this.#userAsked = userAsked;
    this.#onLive = onLive;
    this.#redactor = redactor;
    if (past === undefined) this.#offsetMs = 0;
    this.#answerOrder = new AnswerOrder(clock);
    // Nobody will play it again.
    if (past === undefined && onInputs === undefined) this.#answerOrder.letGo();
  }

  /** Whether the next answer comes from the recording. */
  get isPlaying(): boolean {
    return this.#place < this.#past.length;
  }

  /** Whether the recording is all there is. */
  get isReplay(): boolean {
    return this.#isReplay;
  }

  /** Whether it was here that something was thrown which ends the playback. */
  owns(thrown: unknown): boolean {
    return this.#stop !== undefined && thrown === this.#stop;
  }

  /** Whether it is from the recording, and ended a wait there that the world gave up. */
  wasGivenUp(thrown: unknown): boolean {
    return thrown instanceof Error && this.#givenUp?.has(thrown) === true;
  }

  /** Reads the clock: milliseconds since the epoch. */
  now(): number {
    this.#readings += 1;
    const recorded = this.#times[this.#timePlace];
    if (recorded !== undefined) {
      this.#timePlace += 1;
      return recorded;
    }
    if (this.#isReplay) throw this.end("the recording ends where the time is asked for");
    const atMs = this.#liveMs();
    if (this.#onInputs !== undefined) this.#newTimes.push(atMs);
    return atMs;
  }

  /** The time now, which goes on from where the recording left it since it was asked for first. */
  #liveMs(): number {
    const live = this.#now() - this.#heldMs;
    if (this.#offsetMs === undefined) {
      this.#offsetMs = this.#pastEndMs === undefined ? 0 : this.#pastEndMs - live;
      this.#onLive();
    }
    return live + this.#offsetMs;
  }

  /** Time stands still until `goOn()`: how long that takes is no part of the episode. */
  pause(): void {
    this.#heldSinceMs ??= this.#now();
  }

  goOn(): void {
    if (this.#heldSinceMs === undefined) return;
    this.#heldMs += this.#now() - this.#heldSinceMs;
    this.#heldSinceMs = undefined;
  }

  /** Asks whether the episode's time is over; only that it is, is recorded. */
  isLate(test: () => boolean): boolean {
    if (this.isPlaying) {
      if (this.#past[this.#place]?.type !== "late") return false;
      this.#place += 1;
      return true;
    }
    const isLate = test();
    if (isLate && !this.#isReplay) this.#note({ type: "late" });
    return isLate;
  }

  /** Takes what the policy samples behind the prompt with this hash; live, asks for it. */
  generation(promptHash: string, live: () => Promise<Sampled>): Sampled | Promise<Sampled> {
    this.#throwStop();
    if (!this.isPlaying) {
      this.#goLive("the policy is asked for a turn");
      this.handOverWork();
      // Where nothing is recorded and no secret known, what comes is passed on as it is.
      const isPassedOn = this.#onInputs === undefined && this.#redactor === undefined;
      return isPassedOn ? live() : this.#sample(promptHash, live);
    }
    const input = this.#nextGeneration(promptHash);
    this.#place += 1;
    const { isLate = false, isPartial } = input;
    return { generation: open(input.outcome), isLate, ...(isPartial && { isPartial }) };
  }

  /** Holds a prompt to what the policy was asked with next when this was recorded. */
  requirePrompt(promptHash: string): void {
    if (this.isPlaying) this.#nextGeneration(promptHash);
    else this.requireNextPrompt(promptHash);
  }

  #nextGeneration(promptHash: string): Extract<Input, { type: "generation" }> {
    const input = this.#past[this.#place]!;
    if (input.type !== "generation") {
      const what = `the episode comes to a policy call where it came to ${nameOf(input)}`;
      throw this.diverge(input.type === "outside" ? "environment" : "agent", what);
    }
    if (input.promptHash !== promptHash) throw this.#otherPrompt(promptHash, input.promptHash);
    return input;
  }

  /** Holds the first prompt of a fork's own to what the other was asked with in its place. */
  requireNextPrompt(promptHash: string): void {
    const wanted = this.#nextPromptHash;
    if (wanted !== undefined && wanted !== promptHash) throw this.#otherPrompt(promptHash, wanted);
  }

  #otherPrompt(promptHash: string, before: string): PlaybackStop {
    const hashes = `their hash is ${promptHash} and was ${before}`;
    return this.diverge("agent", `the policy is asked with other ids than before: ${hashes}`);
  }

  async #sample(promptHash: string, live: () => Promise<Sampled>): Promise<Sampled> {
    const about = { type: "generation", promptHash, readings: this.#readings } as const;
    try {
      const sampled = this.#cleanSampled(await live());
      if (this.#onInputs === undefined) return sampled;
      const { generation, isLate, isPartial } = sampled;
      this.#note({
        ...about,
        outcome: { value: generation },
        endedAtMs: this.#liveMs(),
        ...(isLate && { isLate }),
        ...(isPartial && { isPartial }),
      });
      this.flush();
      return sampled;
    } catch (thrown) {
      const error = this.#cleanThrown(thrown);
      if (error instanceof RolloutError) {
        this.#note({ ...about, outcome: { error: toRecordedError(error) } });
      }
      throw error;
    }
  }

  /** See `Outside`; the world's. */
  readonly outside: Outside = (what, work) => this.#callAsked(what, work, { by: "environment" });

  /** The same for the user. */
  readonly usersOutside: Outside = (what, work) => this.#callAsked(what, work, { by: "user" });

  /**
   * The same for a part of the setup that cannot be brought to where it was: once an answer of its came
   * from the recording, the episode cannot go on live, for the reason that `bound` gives.
   */
  borrow(bound: string): Outside {
    return (what, work) => this.#callAsked(what, work, { by: "environment", bound });
  }

  /** While the world is cleared away nobody asks it for anything, and it calls what it needs for that. */
  async clearing(work: () => Promise<void>): Promise<void> {
    this.#underWay += 1;
    this.#isClearing = true;
    try {
      await work();
    } finally {
      this.#isClearing = false;
      this.#underWay -= 1;
    }
  }

  /**
   * What is called between two answers, by a timer say, would stand in the recording where nobody who plays it
   * again looks for it: it is refused, and the next answer is none.
   */
  #callAsked<Result>(
    called: string,
    work: () => Result | Promise<Result>,
    { by, bound }: { readonly by: Party; readonly bound?: string },
  ): Promise<Result> {
    // Nobody but the user calls anything before the world is there.
    if (this.#asked === undefined || this.#underWay > 0) {
      const { isPlaying } = this;
      const made = this.#call(called, work, bound);
      // What failed is there sooner than it was, maybe before whoever called waits for it.
      if (isPlaying) made.catch(() => {});
      return made;
    }
    const what = typeof called === "string" ? this.clean(called) : describe(called);
    const why =
      `${what} was called through outside when ${this.#asked} had been answered, expected it to be called ` +
      `before, and awaited (await outside("${what}", …))`;
    // A user who is asked for a line is asked by the world.
    const party = this.#userAsked() === undefined ? by : "environment";
    this.#stray ??= { party, why };
    const refused = Promise.reject<Result>(
      new OutsideMisuse(`Cannot call what is outside: ${why}`),
    );
    // Nobody may wait for it, and the next answer tells of it.
    refused.catch(() => {});
    return refused;
  }

  async #call<Result>(
    called: string,
    work: () => Result | Promise<Result>,
    bound?: string,
  ): Promise<Result> {
    requireCall(called, work);
    // As it is recorded.
    const what = this.clean(called);
    this.#requireNoOther(what);
    const index = this.#outsideCount++;
    this.#answerOrder.look();
    const recorded = this.#findOutside(what, index);
    if (recorded !== undefined) {
      const { input, place } = recorded;
      if (input.what !== what) {
        if (this.#isClearing) throw notRecorded(what);
        throw this.diverge(this.#caller, `${what} is called where ${input.what} was`);
      }
      this.#skipOutsides();
      this.#bound ??= bound;
      await this.#answerOrder.turn({
        place,
        waitMs: () => this.#waitMs(place, input),
        onMissing: () => {
          this.#missedPlace = this.#place;
          const { begun = 0 } = input;
          this.#missedCount = Math.max(this.#missedCount, begun - this.#outsideCount);
        },
      });
      // Others may have it from the same recording, and whoever asked may write into it.
      return plainCopy(this.#openOutside(input)) as Result;
    }
    if (this.isPlaying && this.#past.slice(this.#place).some(({ type }) => type === "answer")) {
      // It may not have come to its end before.
      if (this.#isClearing) throw notRecorded(what);
      throw this.diverge(this.#caller, `${what} is called, which was not called before`);
    }
    this.#goLive(`${what} is called`);
    const within = this.#userAsked();
    this.#awaited.set(index, { what, party: this.#caller, within });
    let ended = await this.#workOutside(what, work);
    await this.#answerOrder.turn({
      onTurn: () => {
        this.#awaited.delete(index);
        const about = {
          index,
          what,
          ...(within !== undefined &&
            "thrown" in ended &&
            endedBy(within.signal, ended.thrown) && { isGivenUp: true as const }),
        };
        try {
          this.#noteOutside(about, ended);
          // An episode that cannot go on from its recording does all of it again.
          if (bound === undefined) this.#isWorkNew = true;
        } catch (thrown) {
          // Whoever brought it has written into it meanwhile.
          ended = {
            thrown: new OutsideMisuse(`${what} brought no plain values: ${describeError(thrown)}`),
          };
          this.#noteOutside({ index, what }, ended);
        }
      },
    });
    if ("thrown" in ended) throw ended.thrown;
    return ended.value;
  }

  /** What a call brought, or was ended by. */
  #openOutside({ outcome, isGivenUp }: OutsideInput): unknown {
    if (!("error" in outcome)) return outcome.value;
    const error = fromRecordedError(outcome.error);
    if (isGivenUp) (this.#givenUp ??= new WeakSet()).add(error);
    throw error;
  }

  /** Only what is called before another's work first waits can be told as made within it. */
  #requireNoOther(what: string): void {
    if (this.#begins === undefined) return;
    throw new OutsideMisuse(
      `Cannot call ${what} through outside within the work of ${this.#begins}, which is recorded with what ` +
        "it brings, expected it to be called as it is, or before",
    );
  }

  async #workOutside<Result>(
    what: string,
    work: () => Result | Promise<Result>,
  ): Promise<{ readonly value: Result } | { readonly thrown: unknown }> {
    try {
      const given = await this.#beginWork(what, work);
      const why = whyNotJson(given);
      if (why !== undefined) {
        throw new OutsideMisuse(
          `what ${what} brought back cannot be written as JSON (${why}), expected plain values`,
        );
      }
      return { value: this.clean(asJsonHasIt(given)) };
    } catch (thrown) {
      return { thrown: this.#cleanThrown(thrown) };
    }
  }

  #beginWork<Result>(what: string, work: () => Result | Promise<Result>): Result | Promise<Result> {
    this.#begins = what;
    try {
      return work();
    } finally {
      this.#begins = undefined;
    }
  }

  #noteOutside(
    call: Pick<OutsideInput, "index" | "what" | "isGivenUp">,
    ended: { readonly value: unknown } | { readonly thrown: unknown },
  ): void {
    const isLast = this.#outsideCount === call.index + 1;
    if (this.#onInputs === undefined) return;
    this.#note({
      type: "outside",
      ...call,
      ...(!isLast && { begun: this.#outsideCount }),
      outcome:
        "value" in ended
          ? { value: plainCopy(ended.value) }
          : { error: this.clean(toRecordedError(ended.thrown)) },
    });
  }

  /**
   * For how long an answer still waits for what was called before it was handed over, in milliseconds. The time of who
   * is asked is not to end meanwhile: that would be a failure, where what is no longer called is a divergence.
   */
  #waitMs(place: number, { begun = 0 }: OutsideInput): number {
    const isBehind = this.#place < place && this.#past[this.#place]?.type === "outside";
    // It was made at once with others, and by the order in which they begin those are told apart that bear one name.
    const isEarly = this.#outsideCount + this.#missedCount < begun;
    const most = (ms: number): number => Math.min(ms, this.#limitMs / 2);
    if ((isEarly || (isBehind && this.#ranWithLater())) && this.#missedPlace === undefined) {
      // A score that is worked out anew may well call less than before.
      return most(this.#isScoredAnew && this.#asked === "score" ? missingMs : longestMissingMs);
    }
    if (!isBehind) return isEarly ? most(missingMs) : 0;
    return this.#place === this.#missedPlace ? 0 : most(missingMs);
  }

  /**
   * What ends behind the answer that it was called for stands behind that in the recording, where nobody who
   * plays it again looks for it. What the user cost is asked for after a call came too late, too. Who did not
   * wait is whoever was to: the user for what they called themselves, unless the world did not wait for them.
   */
  #requireAwaited(what: string): void {
    this.#answerOrder.flush();
    const [left] = this.#awaited.values();
    if (left === undefined || what === "usage") return;
    const isGivenUp = left.within?.isOver === false;
    const party = !isGivenUp ? left.party : what === "score" ? "grader" : "environment";
    const wait = isGivenUp ? "for the user's line" : `(await outside("${left.what}", …))`;
    throw new RolloutError(
      `${party}/outside-not-awaited`,
      `Cannot use the answer of ${what}: it came before that of ${left.what}, which was called through outside, ` +
        `expected it to wait ${wait}, or the episode could not be played again`,
    );
  }

  /** What was called between two answers may come anywhere else when the episode is played again. */
  #requireNoStray(what: string): void {
    if (this.#stray === undefined || what === "usage") return;
    const { party, why } = this.#stray;
    throw new RolloutError(
      `${party}/outside-not-awaited`,
      `Cannot go on with ${what}: ${why}, or the episode could not be played again`,
    );
  }

  /** Calls through `outside` that are under way, by their place among those that began. */
  readonly #awaited = new Map<
    number,
    {
      readonly what: string;
      readonly party: Party;
      /** What the user is asked for meanwhile. */
      readonly within: { readonly isOver: boolean } | undefined;
    }
  >();
  readonly #playedOutsides = new Set<number>();

  /**
   * Calls that run at once end in any order, and begin in another one than before where what leads to them takes
   * longer: each is found by its name, and among those of one name by the order in which they begin. Where the
   * recording ends before the answer that they are made for, or that did not wait for them, more have begun, whose
   * names nobody knows: there it is found by its place among all that began, and so it is while a world is cleared away.
   */
  #findOutside(
    what: string,
    index: number,
  ): { readonly input: OutsideInput; readonly place: number } | undefined {
    let named: { readonly input: OutsideInput; readonly place: number } | undefined;
    let counted: typeof named;
    let place = this.#place;
    for (; place < this.#past.length; place++) {
      const input = this.#past[place]!;
      if (input.type !== "outside") break;
      if (input.index < this.#passedCount || this.#playedOutsides.has(input.index)) continue;
      if (input.index === index) counted = { input, place };
      if (input.what !== what || (named && named.input.index < input.index)) continue;
      named = { input, place };
    }
    const end = this.#past[place];
    const isWhole = end !== undefined && !("begun" in end) && !this.#isClearing;
    const found = isWhole ? (named ?? counted) : counted;
    if (found !== undefined) this.#playedOutsides.add(found.input.index);
    return found;
  }

  #skipOutsides(): void {
    for (; this.#place < this.#past.length; this.#place++) {
      const input = this.#past[this.#place]!;
      if (input.type !== "outside") return;
      if (!this.#playedOutsides.delete(input.index) && input.index >= this.#passedCount) return;
    }
  }

  /** Whether the call that is recorded next was still under way when a later one began. */
  #ranWithLater(): boolean {
    const next = this.#past[this.#place];
    return next?.type === "outside" && (next.begun ?? 0) > next.index + 1;
  }

  /**
   * Goes behind an answer that is taken as it was recorded. Who gave it is not called, or calls less than before:
   * each call that comes later has the place that it had all the same, and what was still under way then and ended
   * later is passed over, too.
   */
  #pass(answer: Answer): void {
    let count = Math.max(this.#outsideCount, answer.begun ?? 0);
    for (; this.#past[this.#place] !== answer; this.#place++) {
      const input = this.#past[this.#place]!;
      if (input.type === "outside") count = Math.max(count, input.index + 1);
    }
    this.#place += 1;
    this.#outsideCount = count;
    this.#passedCount = count;
    this.#skipOutsides();
  }

  /**
   * Takes what the user or the environment answers. What can be worked out again is, with the answers
   * that `outside` brought back, and compared with what was recorded; what cannot is taken from there.
   */
  async answer<Value>(
    what: string,
    work: () => Promise<Value>,
    about: {
      readonly repeatable: boolean;
      readonly bound?: string;
      /** How long it may take. */
      readonly limitMs: number;
    },
  ): Promise<Value> {
    this.#throwStop();
    this.#limitMs = about.limitMs;
    this.#missedPlace = undefined;
    this.#missedCount = 0;
    this.#underWay += 1;
    try {
      const end = this.#findAnswer(what);
      this.#asked = what;
      if (end === undefined) return await this.#hear(what, work, about.repeatable);
      return await this.#takeAnswer(end, work, about);
    } finally {
      this.#underWay -= 1;
    }
  }

  async #takeAnswer<Value>(
    end: Answer,
    work: () => Promise<Value>,
    { repeatable, bound }: { readonly repeatable: boolean; readonly bound?: string },
  ): Promise<Value> {
    const { outcome, what } = end;
    if (what === "score" && this.#isScoredAnew) return await this.#scoreAnew(end, work);
    if (!repeatable) this.#bound ??= bound;
    if ("hash" in outcome) {
      const value = this.clean(await this.#workAgain(work));
      this.#endAnswer(what);
      const hash = hashOf(value);
      if (hash === outcome.hash) return value;
      throw this.diverge(this.#party, `${what} brings another answer: ${brief(value)}`);
    }
    this.#pass(end);
    return open(outcome as Outcome<Value>);
  }

  /**
   * An outage now is none of the recording's, which says that there was none: it is a failure as any, and
   * what was recorded behind it is left.
   */
  async #workAgain<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      const value = await work();
      this.#throwStop();
      return value;
    } catch (thrown) {
      this.#throwStop();
      const error = this.#cleanThrown(thrown);
      const isLate = error instanceof RolloutError && error.code.endsWith("/timeout");
      if (isLate) this.#requireNoneMissing();
      if (error instanceof RolloutError) this.leave();
      throw error;
    }
  }

  /** A tool has a time limit of its own, which may be over before a call that is no longer made was waited for. */
  #requireNoneMissing(): void {
    const next = this.#past[this.#place];
    if (!this.#answerOrder.isWaiting || next?.type !== "outside") return;
    throw this.diverge(this.#party, `${this.#asked} no longer calls ${next.what}`);
  }

  /**
   * Leaves the recording: what is behind this place is none of the episode's, and what comes now is no part
   * of what it goes on with later. A recording that is all there is stays.
   */
  leave(): void {
    if (this.#isReplay) return;
    this.#place = this.#past.length;
    this.#timePlace = this.#times.length;
    this.#bound = undefined;
    this.#stop = undefined;
    this.stopRecording();
    this.#answerOrder.letGo();
  }

  /**
   * The same where a failure ends the episode of which the recording knows nothing: it does not go on with
   * this answer, which is the last that any episode asks for.
   *
   * @throws ReplayDivergence where the recording is all there is.
   */
  leaveUnlessNext(what: string, failure: RolloutError): void {
    const next = this.#past.slice(this.#place).find(({ type }) => type !== "outside");
    if (next === undefined || (next.type === "answer" && next.what === what)) return;
    if (this.#isReplay) {
      const { party, code, message } = failure;
      throw this.diverge(party, `the episode fails where it went on (${code}): ${message}`);
    }
    this.leave();
  }

  /** A world may catch what it is told to let pass. */
  #throwStop(): void {
    if (this.#stop !== undefined) throw this.#stop;
  }

  /** Who calls what is outside. Nobody but the user does before the world is there. */
  get #caller(): Party {
    const isUser =
      this.#asked === undefined || this.#asked === "usage" || this.#userAsked() !== undefined;
    return isUser ? "user" : "environment";
  }

  /** Whose the answer is that comes out otherwise. Nobody but the user is asked before the world is there. */
  get #party(): Party {
    const isUser = this.#asked === undefined || usersAnswers.includes(this.#asked);
    return isUser ? "user" : "environment";
  }

  /** What is thrown where the episode comes out otherwise than before. */
  diverge(party: Party, message: string): PlaybackStop {
    this.#stop ??= new ReplayDivergence(party, message);
    this.#answerOrder.letGo();
    return this.#stop;
  }

  /** What is thrown where the recording ends before the episode does. */
  end(message: string): PlaybackStop {
    this.#stop ??= new RecordingEnd(message);
    this.#answerOrder.letGo();
    return this.#stop;
  }

  async #scoreAnew<Value>(end: Answer, work: () => Promise<Value>): Promise<Value> {
    const value = this.clean(await this.#workAgain(work));
    this.#pass(end);
    return value;
  }

  #endAnswer(what: string): void {
    const input = this.#past[this.#place];
    if (input?.type === "outside") {
      throw this.diverge(this.#party, `${what} no longer calls ${input.what}`);
    }
    this.#place += 1;
  }

  async #hear<Value>(
    what: string,
    work: () => Promise<Value>,
    repeatable: boolean,
  ): Promise<Value> {
    if (!this.isPlaying) this.#goLive(what);
    this.handOverWork();
    try {
      this.#requireNoStray(what);
      const value = this.clean(await work());
      this.#throwStop();
      this.#requireAwaited(what);
      if (this.#onInputs === undefined) return value;
      // What is recorded is what there was: whoever has the value may write into it before that is on the disk.
      this.#noteAnswer(what, repeatable ? { hash: hashOf(value) } : { value: plainCopy(value) });
      return value;
    } catch (thrown) {
      this.#throwStop();
      const error = this.#cleanThrown(thrown);
      if (error instanceof RolloutError) {
        this.#noteAnswer(what, { error: toRecordedError(error) });
      }
      throw error;
    }
  }

  /** Of calls that have ended it is told by what is recorded of them that they had begun. */
  #noteAnswer(what: string, outcome: Answer["outcome"]): void {
    const isWhole = this.#awaited.size === 0;
    this.#note({ type: "answer", what, ...(!isWhole && { begun: this.#outsideCount }), outcome });
  }

  /** The end of the call that begins now; `undefined` where the recording ends before. */
  #findAnswer(what: string): Answer | undefined {
    for (let place = this.#place; place < this.#past.length; place++) {
      const input = this.#past[place]!;
      if (input.type === "outside") continue;
      if (input.type === "answer" && input.what === what) return input;
      // What is done next follows from what the agent makes of a turn.
      const where = `the episode comes to ${what} where it came to ${nameOf(input)}`;
      throw this.diverge("agent", where);
    }
    return undefined;
  }

  /** @throws RecordingEnd where the recording is all there is. */
  #goLive(what: string): void {
    if (this.#isReplay) throw this.end(`the recording ends where ${what}`);
    if (this.#bound !== undefined) {
      throw this.end(`${this.#bound}: the episode cannot go on from its recording`);
    }
    // What it waits for now takes its time, which goes on from here.
    if (this.#offsetMs === undefined) this.#liveMs();
  }

  /** Whether there may be secrets to take out. */
  get knowsSecrets(): boolean {
    return this.#redactor !== undefined;
  }

  /** The value without known secrets; itself where it holds none. */
  clean<Value>(value: Value): Value {
    return this.#redactor === undefined ? value : this.#redactor.without(value);
  }

  #cleanThrown(thrown: unknown): unknown {
    return this.#redactor === undefined ? thrown : this.#redactor.thrown(thrown);
  }

  #cleanSampled(sampled: Sampled): Sampled {
    if (this.#redactor === undefined) return sampled;
    const { outputIds, logprobs, ...about } = sampled.generation;
    return { ...sampled, generation: { outputIds, logprobs, ...this.clean(about) } };
  }

  #note(input: Input): void {
    if (this.#onInputs !== undefined) this.#newInputs.push(input);
  }

  /** Records nothing any more: what comes now is no part of what the episode goes on with later. */
  stopRecording(): void {
    this.#onInputs = undefined;
  }

  /**
   * Hands over what was recorded where something was done that is not to be done again: whoever is called next may
   * take long, and the process may end meanwhile.
   */
  handOverWork(): void {
    if (this.#isWorkNew) this.flush();
  }

  /** Hands over what was recorded since the last time. */
  flush(): void {
    if (this.#onInputs === undefined) return;
    if (this.#newInputs.length === 0 && this.#newTimes.length === 0) return;
    const inputs: Inputs = { inputs: this.#newInputs, times: this.#newTimes };
    this.#newInputs = [];
    this.#newTimes = [];
    this.#isWorkNew = false;
    this.#onInputs(inputs);
  }
}

type OutsideInput = Extract<Input, { type: "outside" }>;
type Answer = Extract<Input, { type: "answer" }>;

/**
 * For how long a recorded answer waits for a call that was made before it came, in milliseconds. The second is for what
 * has a long limit, such as the line of a person.
 */
const missingMs = 5_000;
const longestMissingMs = 60_000;

/** Calls to the world that are the user's to answer. */
const usersAnswers: readonly string[] = ["begin", "step say", "usage"];

function open<Value>(outcome: Outcome<Value>): Value {
  if ("error" in outcome) throw fromRecordedError(outcome.error);
  return outcome.value;
}

/** The first 16 hexadecimal digits of the SHA-256 of the value's JSON. */
function hashOf(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return hash("sha256", text, "hex").slice(0, 16);
}

/** What a world is told that is cleared away otherwise than before. */
function notRecorded(what: string): Error {
  return new Error(`Cannot call ${what}: the recording does not say what it brought`);
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 200 ? `${text.slice(0, safeCutIndex(text, 200))}…` : text;
}

function nameOf(input: Input): string {
  switch (input.type) {
    case "generation":
      return "a policy call";
    case "late":
      return "its deadline";
    default:
      return input.what;
  }
}

/** What is called may be anybody's to name, and the name is recorded. */
function requireCall(what: unknown, work: unknown): void {
  if (typeof what === "string" && typeof work === "function") return;
  const given = typeof what === "string" ? `${what} with ${describe(work)}` : describe(what);
  throw new OutsideMisuse(
    `Cannot call ${given} through outside, expected a text that names the call, and a function that makes it`,
  );
}

/**
 * A value as it comes back from a recording, whoever has the value itself: a text for a `Date`, no member that
 * is `undefined`, nothing of a list but its items, and nothing that is one thing at two places.
 */
function asJsonHasIt<Value>(value: Value): Value {
  if (typeof value === "string") return value;
  const text = JSON.stringify(value) as string | undefined;
  return (text === undefined ? undefined : JSON.parse(text)) as Value;
}
