import { hash as hashOf } from "node:crypto";
import type { Generation } from "../../engine/engine.ts";
import { isChatTurn, type Input, type Inputs, type Outcome } from "../../episode/inputs/input.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import { parseJson } from "../folder/episode-row.ts";
import type { OwnTask } from "../folder/task-record.ts";
import { readGeneration, writeGeneration, type WrittenGeneration } from "./written-generation.ts";

/** The file of recorded inputs, which an episode cannot compute again. */
export const recordingFile = "recording.jsonl";

/** The version of the recording format. */
export const recordingFormat = 1;

/** The first line of an attempt, or of its resumption. JSON-able. */
export interface BeginLine {
  readonly recording: typeof recordingFormat;
  readonly type: "begin";
  readonly rolloutId: string;
  /** The number of the play, from 1. Another play follows a failed one. */
  readonly attempt: number;
  /** The number of starts and resumptions of this play so far, from 1. */
  readonly start: number;
  readonly groupId: string;
  readonly groupIndex: number;
  readonly sampleIndex: number;
  readonly seed: number;
  /** The seed of sampling. Absent if it equals `seed`. */
  readonly samplingSeed?: number;
  readonly split: string;
  readonly taskIndex: number;
  /** The task that was played, if the environment draws another one at this index. */
  readonly ownTask?: OwnTask;
  /** The attempt and the turn from which this attempt was forked. Absent if it is not a fork. */
  readonly forkedFrom?: ForkPlace;
  /** The `runId` of the run's `run.json`. Absent if the recording was made outside a run's folder. */
  readonly run?: string;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** True if an attempt was recorded in another run. False if one of the run ids is unknown. */
export function isOfOtherRun(
  { run }: { readonly run?: string | undefined },
  runId: string | undefined,
): boolean {
  return run !== undefined && runId !== undefined && run !== runId;
}

/** Describes a recording that was copied from another run. */
export function describeCopy({ run }: Pick<BeginLine, "run">, here: string | undefined): string {
  return `it was recorded in another run, ${run}, and its recording was copied into this one, ${here}`;
}

/** True if a later attempt was played and not recorded. */
export function isOfOtherAttempt(
  { attempt }: Pick<BeginLine, "attempt">,
  row: { readonly attempt: number } | undefined,
): boolean {
  return row !== undefined && row.attempt !== attempt;
}

/** Describes a recording of an earlier play than the finished one. */
export function describeOtherAttempt(
  { attempt }: Pick<BeginLine, "attempt">,
  row: { readonly attempt: number } | undefined,
): string {
  return (
    `its recording is of attempt ${attempt}, and the episode is attempt ${row?.attempt}: a start that records ` +
    "nothing played that one, or what was recorded of it is lost"
  );
}

/**
 * Returns a text for an attempt that cannot be replayed because its recording lacks the task that it played; `undefined`
 * if the task is known.
 */
export function describeLostTask({ ownTask, split, taskIndex }: BeginLine): string | undefined {
  if (ownTask === undefined || ownTask.task !== undefined) return undefined;
  return (
    `it was played with a task of its own in the place of task ${taskIndex} of "${split}", which the recording ` +
    "does not hold: JSON could not say it, or it held a secret"
  );
}

/** Recorded inputs of an attempt, in order. */
interface InputsLine extends Inputs {
  readonly recording: typeof recordingFormat;
  readonly type: "inputs";
  readonly rolloutId: string;
  readonly attempt: number;
  /** The index of the line among the attempt's lines with inputs, from 0. */
  readonly part: number;
  /**
   * The first 16 hexadecimal digits of a SHA-256 over the hash of the previous line (`""` for the first one) and the
   * written JSON of `times` and `inputs`.
   */
  readonly hash: string;
}

/** A point between two lines of an attempt's inputs. */
export interface RecordingPoint {
  /** The number of lines with inputs before this point. */
  readonly part: number;
  /** The hash of the last line before this point, or `""` if there is none. */
  readonly hash: string;
}

/** The point before an attempt's first inputs. */
export const recordingStart: RecordingPoint = { part: 0, hash: "" };

/** The end of an attempt, which is not resumed after that. */
export interface EndLine extends Pick<InputsLine, "recording" | "rolloutId" | "attempt"> {
  readonly type: "end";
  /**
   * Present if a start that records nothing ends the attempt, before its row is written: the recording holds only the
   * first part. If the row is lost, the attempt is resumed.
   */
  readonly isUnrecorded?: true;
  /** The number of the attempt's lines with inputs. Absent if `isUnrecorded` is set. */
  readonly partCount?: number;
}

/** Makes the line that a start which records nothing writes before it ends an attempt. */
export function unrecordedEnd(place: Pick<EndLine, "rolloutId" | "attempt">): EndLine {
  return { recording: recordingFormat, type: "end", ...place, isUnrecorded: true };
}

/** A line of the recording. */
export type RecordingLine = BeginLine | InputsLine | EndLine;

/**
 * Writes a line of inputs, without its line feed.
 *
 * @param place - `hash` is that of the previous line.
 * @param clean - Removes secrets from a JSON text.
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
 * Reads a line; returns `undefined` if it is damaged.
 *
 * @param before - The hash of the previous line, for a line of inputs.
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
    // The hash is correct, but the value is not a list of inputs.
    if (error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}

const turnMarks = ['"type":"generation"', '"what":"turn '];

/**
 * True if a line contains a sample of the policy. False for the attempt's first line, and for inputs of only its user
 * and its world. True for a damaged line, which may have contained a sample.
 */
export function holdsGeneration(line: Buffer): boolean {
  // Most other lines are not parsed at all, and a first line never.
  if (!turnMarks.some((mark) => line.includes(mark))) return false;
  const value = parseJson(line) as
    | { readonly type?: unknown; readonly inputs?: unknown }
    | null
    | undefined;
  if (value?.type === "begin" || value?.type === "end") return false;
  if (!Array.isArray(value?.inputs)) return true;
  // A world's own call may return an object that contains this text.
  return value.inputs.some(
    (input: Partial<Input> | null) => input?.type === "generation" || isChatTurn(input ?? {}),
  );
}

/** Encodes inputs for writing. JSON-able; `readInputs()` decodes them. */
export function writeInputs({ inputs, ...rest }: Inputs): unknown {
  return { ...rest, inputs: inputs.map(writeInput) };
}

/** Decodes the result of `writeInputs()`. */
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

function readInput(input: Input): Input {
  if (input.type !== "generation" || !("value" in input.outcome)) return input;
  const value = readGeneration(input.outcome.value as unknown as WrittenGeneration);
  return { ...input, outcome: { value } satisfies Outcome<Generation> };
}
