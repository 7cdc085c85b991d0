import { findRecordedProblem } from "../../engine/check-sampled.ts";
import type { Generation } from "../../engine/engine.ts";
import type { PlaybackStop } from "../../outside.ts";
import { describeInput, openOutcome, type Input } from "./input.ts";
import type { Sampled } from "./input-source.ts";
import type { PlaybackState } from "./playback-state.ts";
import type { RecordingCursor } from "./recording-cursor.ts";

/** Takes the policy's replies from a recording, and compares the prompts with the recorded ones. */
export class RecordedTurns {
  readonly #cursor: RecordingCursor;
  readonly #state: PlaybackState;
  /** Hash of the first prompt after the recording. `undefined` if it is not known. */
  readonly #nextPromptHash: string | undefined;

  constructor(parts: {
    readonly cursor: RecordingCursor;
    readonly state: PlaybackState;
    readonly nextPromptHash: string | undefined;
  }) {
    this.#cursor = parts.cursor;
    this.#state = parts.state;
    this.#nextPromptHash = parts.nextPromptHash;
  }

  /**
   * Takes the next reply.
   *
   * @throws ReplayDivergence if another prompt was recorded, RecordingEnd if the reply is damaged, and the recorded
   *   failure if the request failed.
   */
  take(promptHash: string): Sampled {
    const { outcome, isLate = false, isPartial } = this.#next(promptHash);
    this.#cursor.advance();
    const generation = openOutcome(outcome);
    this.#requireSound(generation);
    return { generation, isLate, ...(isPartial && { isPartial }) };
  }

  /**
   * Compares the prompt with the recorded one.
   *
   * @throws ReplayDivergence if the policy gets another prompt than the recorded one.
   */
  requirePrompt(promptHash: string): void {
    if (this.#cursor.isAtEnd) this.requireNextPrompt(promptHash);
    else this.#next(promptHash);
  }

  /**
   * Compares a fork's first own prompt with the recorded one.
   *
   * @throws ReplayDivergence if a fork's first own prompt differs from the original's prompt at that place.
   */
  requireNextPrompt(promptHash: string): void {
    const wanted = this.#nextPromptHash;
    if (wanted !== undefined && wanted !== promptHash) throw this.#otherPrompt(promptHash, wanted);
  }

  #next(promptHash: string): Extract<Input, { type: "generation" }> {
    const input = this.#cursor.next!;
    if (input.type !== "generation") {
      const what = `the episode reaches a policy call where it reached ${describeInput(input)}`;
      throw this.#state.diverge(input.type === "outside" ? "environment" : "agent", what);
    }
    if (input.promptHash !== promptHash) throw this.#otherPrompt(promptHash, input.promptHash);
    return input;
  }

  #otherPrompt(promptHash: string, before: string): PlaybackStop {
    const hashes = `their hash is ${promptHash} and was ${before}`;
    const message = `the policy is asked with other ids than before: ${hashes}`;
    return this.#state.diverge("agent", message);
  }

  /** Checks a recorded reply. This is the one check of its ids, logprobs, pieces and columns on their way to a row. */
  #requireSound(generation: Generation): void {
    const problem = findRecordedProblem(generation);
    if (problem === undefined) return;
    throw this.#state.end(`the recording ends before a damaged turn: ${problem.message}`);
  }
}
