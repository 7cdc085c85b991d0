/** Figures on the differences of trained tokens. Differences are trainer's logprob - engine's logprob. JSON-able. */
export interface DifferenceFigures {
  /** Number of tokens. */
  readonly tokenCount: number;
  /** Mean difference in nats. */
  readonly mean: number;
  /** Mean absolute difference in nats. */
  readonly meanAbsolute: number;
  /** The mean absolute difference divided by the mean absolute logprob of the engine. */
  readonly relative: number;
  /** Quantiles of the absolute difference, in nats. */
  readonly absolute: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
  };
  /**
   * The estimate k3 of the Kullback-Leibler divergence of the trainer from the engine, in nats: the mean of
   * `exp(d) - 1 - d`.
   */
  readonly klDivergence: number;
  readonly ratio: RatioFigures;
  /**
   * Share of confident disagreements: tokens to which the engine gives a probability of at least 0.5, and the trainer a
   * logprob that is lower by at least 2 nats.
   */
  readonly confidentShare: number;
}

/** Figures on importance ratios, exp(trainer's logprob - engine's logprob). JSON-able. */
export interface RatioFigures {
  /** 1 if both sides have one distribution, or two and tokens were drawn from the engine's. */
  readonly mean: number;
  /** Share of ratios below 0.5 or above 2. */
  readonly outsideShare: number;
  /** The effective sample size as a share of the tokens, 0 to 1. */
  readonly effectiveShare: number;
}

/** The smallest logprob of a token of which the engine is confident. */
const confident = Math.log(0.5);

/** The smallest drop of the logprob, in nats, that counts as a confident disagreement. */
const disagreement = 2;

/** The value that replaces a sum of 0 of the engine's logprobs, as at temperature 0. In nats. */
const leastSum = 1e-6;

/** The largest exponent of a ratio. Larger ratios would make every mean infinite. */
const largestExponent = 50;

/** Collects the differences of a group of tokens. */
export class DifferenceTally {
  readonly #absolute: number[] = [];
  #sum = 0;
  #absoluteSum = 0;
  #engineSum = 0;
  #divergence = 0;
  #ratioSum = 0;
  #ratioSquares = 0;
  #outsideCount = 0;
  #confidentCount = 0;

  get tokenCount(): number {
    return this.#absolute.length;
  }

  /** Mean absolute difference in nats. 0 if there are no tokens. */
  get meanAbsolute(): number {
    return this.tokenCount === 0 ? 0 : this.#absoluteSum / this.tokenCount;
  }

  /** The mean absolute difference divided by the mean absolute logprob of the engine. */
  get relative(): number {
    return this.#absoluteSum / Math.max(this.#engineSum, leastSum);
  }

  add(engine: number, trainer: number): void {
    const difference = trainer - engine;
    const ratio = Math.exp(Math.min(difference, largestExponent));
    this.#absolute.push(Math.abs(difference));
    this.#sum += difference;
    this.#absoluteSum += Math.abs(difference);
    this.#engineSum += Math.abs(engine);
    this.#divergence += Math.expm1(Math.min(difference, largestExponent)) - difference;
    this.#ratioSum += ratio;
    this.#ratioSquares += ratio * ratio;
    if (ratio < 0.5 || ratio > 2) this.#outsideCount += 1;
    if (engine >= confident && difference <= -disagreement) this.#confidentCount += 1;
  }

  /** Returns the figures, or `undefined` if there are no tokens. */
  figures(): DifferenceFigures | undefined {
    const count = this.tokenCount;
    if (count === 0) return undefined;
    const sorted = Float64Array.from(this.#absolute).toSorted();
    return {
      tokenCount: count,
      mean: this.#sum / count,
      meanAbsolute: this.#absoluteSum / count,
      relative: this.relative,
      absolute: {
        p50: quantile(sorted, 0.5),
        p90: quantile(sorted, 0.9),
        p99: quantile(sorted, 0.99),
        max: sorted.at(-1)!,
      },
      klDivergence: this.#divergence / count,
      ratio: {
        mean: this.#ratioSum / count,
        outsideShare: this.#outsideCount / count,
        effectiveShare: this.#ratioSum ** 2 / (count * this.#ratioSquares),
      },
      confidentShare: this.#confidentCount / count,
    };
  }
}

/** Returns the smallest value that at least `share` of the sorted values do not exceed. */
function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}
