import { bestIds } from "../in-process/best-ids.ts";
import type { ExpertKernels } from "./kernels/build-kernels.ts";
import type { DecoderShape, MixtureShape } from "./model/decoder-shape.ts";
import type { ExpertWorkAddresses } from "./model/memory-plan.ts";
import type { ExpertAddresses, FeedForwardAddresses } from "./model/weight-plan.ts";
import { multiplyRows } from "./multiply-rows.ts";

/** A row that an expert computes. */
interface ExpertRow {
  readonly row: number;
  /** The factor of the expert's output. */
  readonly weight: number;
}

/**
 * The feed-forward part of layers with experts. Each row goes to the experts with the largest router logits. Of experts
 * with equal logits, the lower id comes first. The experts' outputs are added in ascending order of ids, so a row's
 * result has the same bits with any other rows.
 *
 * **Source:** huggingface/transformers src/transformers/models/qwen3_moe/modeling_qwen3_moe.py (softmax over all
 * experts in single precision, then the best of them, then their division by their sum).
 */
export class ExpertLayers {
  readonly #mixture: MixtureShape;
  readonly #hiddenSize: number;
  readonly #kernels: ExpertKernels;
  readonly #work: ExpertWorkAddresses;
  readonly #floats: Float32Array;

  constructor(
    { hiddenSize }: DecoderShape,
    {
      mixture,
      kernels,
      work,
      floats,
    }: {
      mixture: MixtureShape;
      kernels: ExpertKernels;
      work: ExpertWorkAddresses;
      floats: Float32Array;
    },
  ) {
    this.#mixture = mixture;
    this.#hiddenSize = hiddenSize;
    this.#kernels = kernels;
    this.#work = work;
    this.#floats = floats;
  }

  /**
   * Adds the result of each row's experts to `out`.
   *
   * @returns the ids of each row's experts, the largest weight first.
   */
  forward(
    { router, experts }: ExpertAddresses,
    { x, rows, out }: { x: number; rows: number; out: number },
  ): readonly (readonly number[])[] {
    const { routerLogits, mixed } = this.#work;
    multiplyRows(this.#kernels, router, { x, rows, out: routerLogits });
    const expertRows: ExpertRow[][] = experts.map(() => []);
    const routes = Array.from({ length: rows }, (_, row) => {
      const address = routerLogits + row * router.outputSize * 4;
      const { ids, weights } = this.#route(address, router.outputSize);
      for (const [index, id] of ids.entries()) {
        expertRows[id]!.push({ row, weight: weights[index]! });
      }
      return ids;
    });
    const { length } = this.#rowOf(mixed, 0, rows).fill(0);
    for (const [id, some] of expertRows.entries()) {
      if (some.length > 0) this.#addExpert(experts[id]!, { x, rows: some });
    }
    this.#kernels.accumulate(mixed, mixed + length * 4, 1, out);
    return routes;
  }

  /** Chooses a row's experts. Replaces the row's logits. */
  #route(address: number, paddedCount: number): { ids: readonly number[]; weights: number[] } {
    const { expertCount, perToken, normalizesWeights } = this.#mixture;
    const start = address / 4;
    const end = address + paddedCount * 4;
    const row = this.#floats.subarray(start, start + expertCount);
    const ids = bestIds(row, perToken);
    // Ids that only pad the last panel are never chosen.
    this.#floats.fill(-Infinity, start + expertCount, start + paddedCount);
    const largest = this.#kernels.largest(address, end);
    const sum = this.#kernels.exponentials(address, end, largest, 1, address);
    const chosen = ids.map((id) => row[id]!);
    const total = normalizesWeights ? chosen.reduce((before, each) => before + each, 0) : sum;
    return { ids, weights: chosen.map((each) => each / total) };
  }

  /** Adds an expert's outputs, times their weights, to the sums of its rows. */
  #addExpert(
    { gate, output }: FeedForwardAddresses,
    { x, rows }: { x: number; rows: readonly ExpertRow[] },
  ): void {
    const { gathered, gated, activated, outputs, mixed } = this.#work;
    const rowBytes = this.#hiddenSize * 4;
    for (const [index, { row }] of rows.entries()) {
      this.#rowOf(gathered, index).set(this.#rowOf(x, row));
    }
    multiplyRows(this.#kernels, gate, { x: gathered, rows: rows.length, out: gated });
    this.#kernels.gateExpert(gated, rows.length, activated);
    multiplyRows(this.#kernels, output, { x: activated, rows: rows.length, out: outputs });
    for (const [index, { row, weight }] of rows.entries()) {
      const from = outputs + index * rowBytes;
      this.#kernels.accumulate(from, from + rowBytes, weight, mixed + row * rowBytes);
    }
  }

  /** Returns `count` rows of a list of rows. */
  #rowOf(address: number, row: number, count = 1): Float32Array {
    const start = address / 4 + row * this.#hiddenSize;
    return this.#floats.subarray(start, start + count * this.#hiddenSize);
  }
}
