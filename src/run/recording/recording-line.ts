import { hash as hashOf } from "node:crypto";
import type { Generation } from "../../engine/engine.ts";
import type { Input, Inputs, Outcome } from "../../episode/inputs/input.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import { parseJson } from "../folder/episode-row.ts";
import type { OwnTask } from "../folder/task-record.ts";

/** The file that keeps what episodes could not have worked out by themselves. */
export const recordingFile = "recording.jsonl";

/** Version of this format. */
export const recordingFormat = 1;

/** Begins the recording of an attempt, or says that it went on after an interruption. JSON-able. */
export interface BeginLine {
  readonly recording: typeof recordingFormat;
  readonly type: "begin";
  readonly rolloutId: string;
  /** Counts plays after failures, from 1. */
  readonly attempt: number;
  /** Counts how often this play was begun or went on, from 1. */
  readonly start: number;
  readonly groupId: string;
  readonly groupIndex: number;
  readonly sampleIndex: number;
  readonly seed: number;
  /** Absent where it is `seed`. */
  readonly samplingSeed?: number;
  readonly split: string;
  readonly taskIndex: number;
  /** The task that was given, if the environment draws another one in its place. */
  readonly ownTask?: OwnTask;
  /** Absent for what is no fork. */
  readonly forkedFrom?: ForkPlace;
  /** The `runId` of the run's `run.json`; absent if the recording was made outside a run's folder. */
  readonly run?: string;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** Whether an attempt was recorded in another run than the given one, as far as both are known. */
export function isOfOtherRun(
  { run }: { readonly run?: string | undefined },
  runId: string | undefined,
): boolean {
  return run !== undefined && runId !== undefined && run !== runId;
}

/** Says that a recording is another run's. */
export function describeCopy({ run }: Pick<BeginLine, "run">, here: string | undefined): string {
  return `it was recorded in another run, ${run}, and its recording was copied into this one, ${here}`;
}

/** Returns true if a later attempt was played and not recorded. */
export function isOfOtherAttempt(
  { attempt }: Pick<BeginLine, "attempt">,
  row: { readonly attempt: number } | undefined,
): boolean {
  return row !== undefined && row.attempt !== attempt;
}

/** Says that a recording is of an attempt that came before the finished one. */
export function describeOtherAttempt(
  { attempt }: Pick<BeginLine, "attempt">,
  row: { readonly attempt: number } | undefined,
): string {
  return (
    `its recording is of attempt ${attempt}, and the episode is attempt ${row?.attempt}: a start that records ` +
    "nothing played that one, or what was recorded of it is lost"
  );
}

/** Why an attempt's task cannot be had again; nothing where it can. */
export function describeLostTask({ ownTask, split, taskIndex }: BeginLine): string | undefined {
  if (ownTask === undefined || ownTask.task !== undefined) return undefined;
  return (
    `it was played with a task of its own in the place of task ${taskIndex} of "${split}", which the recording ` +
    "does not hold: JSON could not say it, or it held a secret"
  );
}

/** Inputs of an attempt, as they came. */
interface InputsLine extends Inputs {
  readonly recording: typeof recordingFormat;
  readonly type: "inputs";
  readonly rolloutId: string;
  readonly attempt: number;
  /** Counts the lines of the attempt, from 0. */
  readonly part: number;
  /**
   * The first 16 hexadecimal digits of the SHA-256 of the hash of the line before (`""` for the first)
   * and the JSON of `times` and `inputs` as they are written.
   */
  readonly hash: string;
}

/** Says that an attempt came to its end: it is not gone on with. */
export interface EndLine extends Pick<InputsLine, "recording" | "rolloutId" | "attempt"> {
  readonly type: "end";
  /**
   * Present where it comes to its end in a start that records nothing, before its row is written: what is recorded is
   * its beginning. Where the row is lost, it is gone on with.
   */
  readonly isUnrecorded?: true;
  /** The number of the attempt's lines of inputs; absent with `isUnrecorded`. */
  readonly partCount?: number;
}

/** Says of an attempt that a start which records nothing brings it to its end. */
export function unrecordedEnd(place: Pick<EndLine, "rolloutId" | "attempt">): EndLine {
  return { recording: recordingFormat, type: "end", ...place, isUnrecorded: true };
}

/** A line of the recording. */
export type RecordingLine = BeginLine | InputsLine | EndLine;

/** How a generation is written: its numbers are bytes in base64, little-endian. */
type WrittenGeneration = Omit<Generation, "outputIds" | "logprobs"> & {
  /** 32-bit integers. */
  readonly ids: string;
  /** 64-bit floats. */
  readonly logprobs: string;
};

/**
 * The line that holds inputs, without its line feed.
 *
 * @param place - `hash` is that of the line before.
 * @param clean - Takes secrets out of a JSON text.
 */
export function writeInputsLine(
  place: Pick<InputsLine, "rolloutId" | "attempt" | "part" | "hash">,
  { inputs, times }: Inputs,
  clean: (json: string) => string = (json) => json,
): { readonly text: string; readonly hash: string } {
  const { rolloutId, attempt, part } = place;
  const written = clean(JSON.stringify(inputs.map(writeInput)));
  const body = `"times":${JSON.stringify(times)},"inputs":${written}`;
  const hash = chain(place.hash, body);
  const head = { recording: recordingFormat, type: "inputs", rolloutId, attempt, part, hash };
  return { text: `${JSON.stringify(head).slice(0, -1)},${body}}`, hash };
}

/**
 * Reads a line; `undefined` where it is damaged.
 *
 * @param before - The hash of the line before, for a line of inputs.
 */
export function readRecordingLine(line: Buffer, before: string): RecordingLine | undefined {
  const value = parseJson(line) as Partial<RecordingLine> | null | undefined;
  if (value?.recording !== recordingFormat || typeof value.rolloutId !== "string") return undefined;
  if (value.type === "begin" || value.type === "end") return value as BeginLine | EndLine;
  const text = line.toString("utf8");
  const at = text.indexOf('"times":');
  const isSound =
    value.type === "inputs" && at > 0 && chain(before, text.slice(at, -1)) === value.hash;
  if (!isSound) return undefined;
  const { inputs, ...rest } = value as InputsLine;
  try {
    return { ...rest, inputs: inputs.map(readInput) };
  } catch (error) {
    // Whoever wrote it has hashed what is no list of inputs.
    if (error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}

const generationMark = '"type":"generation"';

/**
 * Whether a line of a recording holds what the policy was found to have sampled, and not only how an attempt began and
 * what its user and its world had brought until then. Of a damaged one nothing says that it does not.
 */
export function holdsGeneration(line: Buffer): boolean {
  // Most lines that do not are not parsed, and none is that says only how its attempt began.
  if (!line.includes(generationMark)) return false;
  const value = parseJson(line) as
    | { readonly type?: unknown; readonly inputs?: unknown }
    | null
    | undefined;
  if (value?.type === "begin" || value?.type === "end") return false;
  if (!Array.isArray(value?.inputs)) return true;
  // What was called outside may have brought an object of this kind.
  return value.inputs.some((input: Partial<Input> | null) => input?.type === "generation");
}

/** Inputs as they are written; `readInputs()` reads them. JSON-able. */
export function writeInputs({ inputs, ...rest }: Inputs): unknown {
  return { ...rest, inputs: inputs.map(writeInput) };
}

/** What `writeInputs()` made, once more. */
export function readInputs(written: unknown): Inputs {
  const { inputs, ...rest } = written as Inputs;
  return { ...rest, inputs: inputs.map(readInput) };
}

function chain(before: string, body: string): string {
  return hashOf("sha256", before + body, "hex").slice(0, 16);
}

function writeInput(input: Input): unknown {
  if (input.type !== "generation" || !("value" in input.outcome)) return input;
  return { ...input, outcome: { value: writeGeneration(input.outcome.value) } };
}

function writeGeneration({ outputIds, logprobs, ...rest }: Generation): WrittenGeneration {
  return {
    ids: toBase64(outputIds, keptInts),
    logprobs: toBase64(logprobs, keptFloats),
    ...rest,
  };
}

function readInput(input: Input): Input {
  if (input.type !== "generation" || !("value" in input.outcome)) return input;
  const { ids, logprobs, ...rest } = input.outcome.value as unknown as WrittenGeneration;
  const value: Generation = {
    outputIds: [...new Int32Array(fromBase64(ids))],
    logprobs: [...new Float64Array(fromBase64(logprobs))],
    ...rest,
  };
  return { ...input, outcome: { value } satisfies Outcome<Generation> };
}

/** Numbers for which there is room that is used again and again: those of nearly all turns. */
const keptLength = 4096;
const keptFloats = new Float64Array(keptLength);
const keptInts = new Int32Array(keptFloats.buffer);
const keptBytes = Buffer.from(keptFloats.buffer);

function toBase64(numbers: readonly number[], kept: Int32Array | Float64Array): string {
  if (numbers.length > keptLength) {
    const { buffer } = kept === keptInts ? new Int32Array(numbers) : new Float64Array(numbers);
    return Buffer.from(buffer).toString("base64");
  }
  kept.set(numbers);
  return keptBytes.toString("base64", 0, numbers.length * kept.BYTES_PER_ELEMENT);
}

function fromBase64(text: string): ArrayBuffer {
  return new Uint8Array(Buffer.from(text, "base64")).buffer;
}
