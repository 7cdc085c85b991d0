import type { GenerateOptions, Generation } from "../../engine/engine.ts";
import { emptyGeneration } from "../../engine/empty-generation.ts";

/**
 * What an engine tells of one call while it lasts. It is handed on to whoever asked, until the call is given up,
 * and kept: what was told is never taken back.
 */
export class TokenNotifier {
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #sayHeld: GenerateOptions["onHeld"];
  #isHeld = false;
  #isMuted = false;
  /** What the engine is given: whoever asked hears through these. */
  readonly options: GenerateOptions;

  /** @param options - Of whoever asked. */
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

  /** Whoever asked hears of this call no more, and is not held up by it. */
  mute(): void {
    if (this.#isMuted) return;
    this.#isMuted = true;
    if (this.#isHeld) this.#sayHeld?.(false);
  }

  /**
   * What was told, as the part of the turn that an engine handed over which was not waited for any longer.
   *
   * @param policyVersion - By which it was sampled.
   */
  toGeneration(requestId: string, policyVersion: string): Generation {
    const tokenCount = this.#ids.length;
    const what = tokenCount === 0 ? "nothing" : "no more";
    const reason = `the engine had ${what} to show when it was cut short`;
    const nothing = emptyGeneration([{ requestId, reason }]);
    if (tokenCount === 0) return nothing;
    const piece = { requestId, tokenCount, policyVersion, finish: "abort" } as const;
    return { ...nothing, outputIds: this.#ids, logprobs: this.#logprobs, pieces: [piece] };
  }
}
