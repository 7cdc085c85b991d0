import type { GenerateOptions, GenerateRequest, Generation } from "./engine.ts";
import { emptyGeneration } from "./empty-generation.ts";
import { interruptedAfterStreaming } from "./output-rule.ts";

/**
 * Passes the events of one engine call on to its caller, until the call is abandoned, and keeps the streamed tokens.
 */
export class TokenNotifier {
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #sayHeld: GenerateOptions["onHeld"];
  #isHeld = false;
  #isMuted = false;
  /** The options for the engine, which report to the caller. */
  readonly options: GenerateOptions;

  /** @param options - The caller's options. */
  constructor(options: GenerateOptions) {
    const { onTokens, onHeld, onNotCutShort } = options;
    this.#sayHeld = onHeld;
    this.options = {
      ...options,
      ...(onTokens && {
        onTokens: (tokens) => {
          if (this.#isMuted) return;
          for (const id of tokens.tokenIds) this.#ids.push(id);
          for (const logprob of tokens.logprobs) this.#logprobs.push(logprob);
          onTokens(tokens);
        },
      }),
      ...(onHeld && {
        onHeld: (isHeld) => {
          if (this.#isMuted) return;
          this.#isHeld = isHeld;
          onHeld(isHeld);
        },
      }),
      ...(onNotCutShort && {
        onNotCutShort: () => {
          if (!this.#isMuted) onNotCutShort();
        },
      }),
    };
  }

  /** Stops reporting to the caller. If the call was last reported as held, reports that it is no longer held. */
  mute(): void {
    if (this.#isMuted) return;
    this.#isMuted = true;
    if (this.#isHeld) this.#sayHeld?.(false);
  }

  /** True if the streamed ids are the first ids of a reply. */
  isStartOf({ outputIds }: Pick<Generation, "outputIds">): boolean {
    return this.#ids.every((id, place) => outputIds[place] === id);
  }

  /**
   * Returns the streamed tokens as a part of a turn, in place of an answer that was not awaited.
   *
   * @param policyVersion - The version that sampled the tokens.
   * @throws RolloutError `engine/interrupted` if tokens were streamed and the request has side columns, which only the
   *   answer has.
   */
  toGeneration(
    { requestId, columns }: Pick<GenerateRequest, "requestId" | "columns">,
    policyVersion: string,
  ): Generation {
    const tokenCount = this.#ids.length;
    if (tokenCount > 0 && columns !== undefined) {
      throw interruptedAfterStreaming(requestId, {
        rule: "a request of side columns",
        why: "the engine returned no answer",
        discarded: [{ requestId, reason: "their columns did not arrive", tokenCount }],
      });
    }
    const what = tokenCount === 0 ? "nothing" : "no more";
    const reason = `the engine had ${what} to show when it was cut short`;
    const nothing = emptyGeneration([{ requestId, reason }]);
    if (tokenCount === 0) return nothing;
    const piece = { requestId, tokenCount, policyVersion, finish: "abort" } as const;
    return { ...nothing, outputIds: this.#ids, logprobs: this.#logprobs, pieces: [piece] };
  }
}
