import { createColumnPart } from "../../src/columns/column-part.ts";
import type { ExpertShape } from "../../src/columns/column-specs.ts";
import type { RouteTable, TrainerRow } from "../../src/doctor/index.ts";
import { createSeededRandom } from "../../src/environment/seeded-random.ts";
import type { Sample } from "../../src/trajectory/sample.ts";

/** A simulated policy and its trainer, without a fault. */
export interface PairSettings {
  readonly seed: number;
  readonly rowCount: number;
  /** Standard deviation of the logits: 1 is flat, 5 is peaked. */
  readonly spread: number;
  /** The engine's temperature. Default 1. */
  readonly temperature?: number;
  /** The trainer's temperature. Default: the engine's. */
  readonly trainerTemperature?: number;
  /** Number of the most probable ids that the engine keeps; its logprobs are over them. Default: all. */
  readonly topK?: number;
  /** Standard deviation of the trainer's change of the logits, in every second row. Those have lag 1. Default 0. */
  readonly staleness?: number;
  /** Rounds the trainer's numbers to 16 bits (bfloat16). Default: neither. */
  readonly rounded?: "logprobs" | "logits";
}

const vocabularySize = 48;

/** The number of a row's tokens, and its turns. */
const rowLength = 90;
const turns = [
  [20, 44],
  [52, 86],
] as const;

export const routeShape: ExpertShape = { layerCount: 4, perToken: 2, expertCount: 16 };

/** Plays rows with a policy of random logits, and scores them. */
export function simulatePair(settings: PairSettings): {
  readonly rows: readonly Sample[];
  readonly trainer: readonly TrainerRow[];
} {
  const random = createSeededRandom(String(settings.seed));
  const rows: Sample[] = [];
  const trainer: TrainerRow[] = [];
  for (let index = 0; index < settings.rowCount; index++) {
    const staleness = index % 2 === 0 ? (settings.staleness ?? 0) : 0;
    const [engine, scores] = [Array<number>(rowLength).fill(0), new Float64Array(rowLength)];
    const lossMask = Array<0 | 1>(rowLength).fill(0);
    for (const [start, end] of turns) lossMask.fill(1, start, end);
    for (let token = 0; token < rowLength; token++) {
      const [own, other] = sampleToken({ ...settings, staleness }, () => random.next());
      if (lossMask[token] === 1) engine[token] = own;
      scores[token] = other;
    }
    const version = staleness > 0 ? "6" : "7";
    rows.push(toSample(`row ${index}`, { engine, lossMask, version, random: () => random.next() }));
    const rolloutId = `row ${index}`;
    trainer.push({ rolloutId, segment: 0, logprobs: scores, policyVersion: "7" });
  }
  return { rows, trainer };
}

/** Draws a token. Returns the engine's logprob, and the trainer's. */
function sampleToken(
  {
    spread,
    temperature = 1,
    trainerTemperature = temperature,
    topK = vocabularySize,
    staleness = 0,
    rounded,
  }: PairSettings,
  next: () => number,
): readonly [engine: number, trainer: number] {
  const logits = Array.from({ length: vocabularySize }, () => spread * normal(next));
  const kept = logits.toSorted((one, other) => other - one)[topK - 1]!;
  const engine = logSoftmax(
    logits.map((logit) => (logit < kept ? -Infinity : logit / temperature)),
  );
  let left = next();
  let id = engine.findIndex((logprob) => (left -= Math.exp(logprob)) < 0);
  if (id < 0) id = engine.findIndex((logprob) => logprob > -Infinity);
  const changed = logits.map((logit) => {
    const value = (staleness === 0 ? logit : logit + staleness * normal(next)) / trainerTemperature;
    return rounded === "logits" ? toBfloat16(value) : value;
  });
  const score = logSoftmax(changed)[id]!;
  return [engine[id]!, rounded === "logprobs" ? toBfloat16(score) : score];
}

function logSoftmax(logits: readonly number[]): readonly number[] {
  const largest = Math.max(...logits);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return logits.map((logit) => logit - largest - Math.log(sum));
}

function normal(next: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

/** Rounds to the nearest number with 8 bits of precision. */
function toBfloat16(value: number): number {
  const words = new Uint32Array(new Float32Array([value]).buffer);
  words[0] = (words[0]! + 0x7fff + ((words[0]! >>> 16) & 1)) & 0xffff0000;
  return new Float32Array(words.buffer)[0]!;
}

function toSample(
  rolloutId: string,
  {
    engine,
    lossMask,
    version,
    random,
  }: {
    readonly engine: readonly number[];
    readonly lossMask: readonly (0 | 1)[];
    readonly version: string;
    readonly random: () => number;
  },
): Sample {
  const { layerCount, perToken, expertCount } = routeShape;
  const bytes = new Uint8Array((rowLength - 1) * layerCount * perToken);
  for (let at = 0; at < bytes.length; at += perToken) {
    const first = Math.floor(random() * expertCount);
    bytes[at] = first;
    bytes[at + 1] = (first + 1 + Math.floor(random() * (expertCount - 1))) % expertCount;
  }
  const part = createColumnPart({ from: 0, rows: rowLength - 1, policyVersion: version, bytes });
  return {
    format: 1,
    rolloutId,
    groupId: rolloutId,
    taskId: rolloutId,
    outcome: "completed",
    stopReason: "finished",
    segment: 0,
    tokenIds: Array<number>(rowLength).fill(1),
    promptLength: turns[0][0],
    lossMask,
    logprobs: engine,
    policyVersions: lossMask.map((bit) => (bit === 1 ? version : "")),
    turns: turns.map(([start, end], turnIndex) => {
      return { turnIndex, start, end, finish: "stop" as const, promptHash: "", outputHash: "" };
    }),
    columns: { routedExperts: [part] },
    metadata: {},
  };
}

/** Moves a list: the value of place i stands at i + shift. Places without a value have none. */
export function moved(values: Float64Array, shift: number): Float64Array {
  return values.map((_, place) => values[place - shift] ?? NaN);
}

/** The engine's routes of a row, as the trainer has them. */
export function routesOf(row: Sample): RouteTable {
  const { layerCount, perToken } = routeShape;
  const ids = Uint8Array.from(row.columns!.routedExperts![0]!.bytes!);
  return { rows: rowLength - 1, layerCount, perToken, ids };
}
