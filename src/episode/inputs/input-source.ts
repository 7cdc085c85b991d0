import type { Generation } from "../../engine/engine.ts";

/** A reply of the policy. */
export interface Sampled {
  readonly generation: Generation;
  /** True if the episode's time was over when the reply came. */
  readonly isLate: boolean;
  /** Present if an interruption cut the sampling short. The turn continues after these ids. */
  readonly isPartial?: true;
}

/** Properties of an answer of the user or the world. */
export interface AnswerTerms {
  /** True if the same call gives the same answer again (see `Environment.repeatable`). */
  readonly repeatable: boolean;
  /**
   * The reason why the episode cannot continue live after this answer was taken from the recording. Absent if it can.
   */
  readonly bound?: string;
  /** Time limit of the call, in milliseconds. */
  readonly limitMs: number;
}

/** A call through `outside`. */
export interface OutsideCall<Result> {
  /** 0-based index among the episode's calls through `outside`, in the order in which they start. */
  readonly index: number;
  /** The name under which the call is recorded. */
  readonly what: string;
  readonly work: () => Result | Promise<Result>;
  /**
   * The reason why the episode cannot continue live after this call was answered from the recording. `undefined` if it
   * can.
   */
  readonly bound?: string | undefined;
}

/**
 * The source of all inputs that an episode cannot compute by itself. `LiveInputs` gets each input from the clock, the
 * engine, the user or the world; `InputRecorder` also records it; `RecordedInputs` takes it from a recording until its
 * end.
 */
export interface InputSource {
  /** Returns the episode's time, in milliseconds since the epoch. */
  now(): number;
  /** Returns true if the episode's time is over. Without a recorded answer, calls `test` to find out. */
  isLate(test: () => boolean): boolean;
  /**
   * Returns the policy's reply to the prompt with this hash. `sample` requests it from the engine.
   *
   * @returns the reply itself if it is recorded, so that a replay needs no promise for it.
   */
  generation(promptHash: string, sample: () => Promise<Sampled>): Sampled | Promise<Sampled>;
  /** Resolves with an answer of the user or the world. `work` requests it. */
  answer<Value>(what: string, work: () => Promise<Value>, terms: AnswerTerms): Promise<Value>;
  /** Resolves with the result of a call through `outside`. */
  call<Result>(call: OutsideCall<Result>): Promise<Result>;
}
