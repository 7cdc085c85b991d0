import type {
  Engine,
  GenerateOptions,
  GenerateRequest,
  Generation,
} from "../../src/engine/engine.ts";
import { createSeededRandom, type Random } from "../../src/environment/seeded-random.ts";
import { RolloutError } from "../../src/errors.ts";
import type { Clock } from "../../src/async/clock.ts";
import { hashIds } from "../../src/trajectory/rolling-hash.ts";
import { MemoryDisk } from "./memory-disk.ts";
import { SimulatedClock } from "./simulated-clock.ts";
import { restOfTurn } from "./simulated-policy.ts";

/** One answer of the engine's. */
export interface SampledTurn {
  /** Counts all samples, for any caller. */
  readonly number: number;
  /** Which play of the attempt asked. */
  readonly attempt: number;
  readonly promptLength: number;
  /** The prompt, and the ids sampled after it. */
  readonly ids: readonly number[];
  readonly seed: number | undefined;
  /** True if the weights changed during the turn, although sampling was reported as paused. */
  readonly isMixed: boolean;
}

/**
 * The state that all processes of a simulation share: time, the disk, the engine and its weights.
 */
export class SimulatedWorld {
  readonly random: Random;
  /** A generator of its own for later draws, so that the other draws of a seed stay the same. */
  readonly more: Random;
  readonly clock = new SimulatedClock();
  readonly disk: MemoryDisk;
  /** The engine's samples by session, to compare the rows with. */
  readonly sampled = new Map<string, SampledTurn[]>();
  /** Policy calls that a recording on the disk answers, by session, play and hash of the prompt. */
  journalled = new Set<string>();
  /** Violated invariants. */
  readonly wrong: string[] = [];
  /** Policy calls that hung. */
  hungCount = 0;
  version = 1;
  /** Weight updates with all sampling paused. */
  updateCount = 0;
  turnCount = 0;
  #drawCount = 0;

  constructor(random: Random, seed: number) {
    this.random = random;
    this.more = createSeededRandom(`more/${seed}`);
    this.disk = new MemoryDisk(() => this.clock.now());
  }

  /** A number that was never drawn before. */
  readonly draw = (): number => {
    this.#drawCount += 1;
    return this.#drawCount;
  };

  /** The prompt and the seed determine the policy's samples, but not their time and faults. */
  engine(troubles: number, clock: Clock): Engine {
    const { random } = this;
    return {
      kind: "simulated",
      generate: async (request, options): Promise<Generation> => {
        this.#requireNew(request);
        const { updateCount, version } = this;
        const wanted = restOfTurn([...request.promptIds], request.sampling.seed);
        let count = wanted.length;
        const ms = random.between(1, 900);
        const fate = random.next();
        if (fate < 0.02 * troubles) {
          throw new RolloutError("engine/unreachable", "Cannot connect", { retryable: true });
        }
        if (fate < 0.03 * troubles) {
          this.hungCount += 1;
          await clock.sleep(5e6, { signal: options!.signal! });
        }
        const isCut = await this.#waitOrCut(ms, { ...options, clock });
        if (isCut) count = random.between(0, wanted.length - 1);
        const outputIds = wanted.slice(0, count);
        const isLying = fate > 1 - 0.02 * troubles;
        const isMixed = updateCount !== this.updateCount;
        if (!isLying) this.#note(request, { outputIds, isMixed });
        return {
          outputIds: isLying ? outputIds.map((id) => id + 0x20_0000) : outputIds,
          logprobs: outputIds.map((id) => -(id % 7) / 8),
          finish: isCut ? { type: "length" } : { type: "stop" },
          pieces: [
            {
              requestId: request.requestId,
              tokenCount: count,
              policyVersion: String(version),
              finish: isCut ? "abort" : "stop",
            },
          ],
          discarded: [],
        };
      },
      describe: async () => ({
        kind: "simulated",
        logprobConvention: "tempered",
        policyVersion: String(this.version),
      }),
      close: async () => {},
    };
  }

  /** Journalled turns are not sampled again. */
  #requireNew(request: GenerateRequest): void {
    // A play after a failure asks again.
    const asked = `${request.sessionId}:${attemptOf(request)} ${hashIds(request.promptIds)}`;
    if (!this.journalled.has(asked)) return;
    this.wrong.push(`${request.requestId} is sampled again, and is journalled`);
  }

  async #waitOrCut(
    ms: number,
    { clock, cutShort, signal }: GenerateOptions & { readonly clock: Clock },
  ): Promise<boolean> {
    if (cutShort?.aborted === true) return true;
    return await new Promise<boolean>((resolve, reject) => {
      const callOff = clock.after(ms, () => end(() => resolve(false)));
      const onCut = (): void => end(() => resolve(true));
      const onAbort = (): void => end(() => reject(signal!.reason as Error));
      const end = (settle: () => void): void => {
        callOff();
        cutShort?.removeEventListener("abort", onCut);
        signal?.removeEventListener("abort", onAbort);
        this.clock.note();
        settle();
      };
      cutShort?.addEventListener("abort", onCut, { once: true });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #note(
    request: GenerateRequest,
    { outputIds, isMixed }: { readonly outputIds: readonly number[]; readonly isMixed: boolean },
  ): void {
    const { sessionId, promptIds, sampling } = request;
    this.turnCount += 1;
    const known = this.sampled.get(sessionId) ?? [];
    known.push({
      number: this.turnCount,
      attempt: attemptOf(request),
      promptLength: promptIds.length,
      ids: [...promptIds, ...outputIds],
      seed: sampling.seed,
      isMixed,
    });
    this.sampled.set(sessionId, known);
  }
}

function attemptOf({ requestId, sessionId }: GenerateRequest): number {
  return Number.parseInt(requestId.slice(sessionId.length + 1), 10);
}
