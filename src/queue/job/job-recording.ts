import type { Input, Inputs } from "../../episode/inputs/input.ts";
import type { PackedRecording } from "../../run/packed/packed-episode.ts";
import {
  readRecordingLine,
  recordingStart,
  writeInputsLine,
  type RecordingPoint,
} from "../../run/recording/recording-line.ts";
import type { PlayPlace } from "../../run/attempt/attempt-player.ts";

/** Writes the inputs of one play as lines. Each line contains the hash of the line before it. */
export class LineWriter {
  readonly #place: PlayPlace;
  readonly #clean: ((json: string) => string) | undefined;
  readonly #start: RecordingPoint;
  readonly lines: string[];
  #hash: string;

  /**
   * @param options - `start` is the point in the attempt's recording that the first line follows.
   *   `before` are lines that are already written. `clean` removes secrets from a JSON text.
   */
  constructor(
    place: PlayPlace,
    options: {
      readonly start?: RecordingPoint;
      readonly before?: ReadLines;
      readonly clean?: (json: string) => string;
    } = {},
  ) {
    const { start = recordingStart, before, clean } = options;
    this.#place = place;
    this.#clean = clean;
    this.#start = start;
    this.lines = [...(before?.lines ?? [])];
    this.#hash = before?.lastHash ?? start.hash;
  }

  /** Returns the lines in the form in which the run appends them to its recording. */
  pack(): PackedRecording {
    const bytes = Buffer.from(this.lines.map((line) => `${line}\n`).join(""));
    return { bytes, partCount: this.#nextPart, lastHash: this.#hash };
  }

  get #nextPart(): number {
    return this.#start.part + this.lines.length;
  }

  /** Adds inputs as a new line and returns the line. */
  add(inputs: Inputs): string {
    const { rolloutId, attempt } = this.#place;
    const place = { rolloutId, attempt, part: this.#nextPart, hash: this.#hash };
    const { text, hash } = writeInputsLine(place, inputs, this.#clean);
    this.#hash = hash;
    this.lines.push(text);
    return text;
  }
}

/** Recorded lines with their content. */
export interface ReadLines {
  readonly lines: readonly string[];
  /** `parts[i]` is the content of `lines[i]`. */
  readonly parts: readonly Inputs[];
  readonly lastHash: string;
}

/**
 * Reads lines up to the first one that is damaged, is from another play, or does not follow the line before it.
 * @param start - The point that the first line follows.
 */
export function readLines(
  lines: readonly string[],
  place: PlayPlace,
  start: RecordingPoint = recordingStart,
): ReadLines {
  const sound: string[] = [];
  const parts: Inputs[] = [];
  let lastHash = start.hash;
  for (const text of lines) {
    const line = readRecordingLine(Buffer.from(text), lastHash);
    const fits =
      line?.type === "inputs" &&
      line.rolloutId === place.rolloutId &&
      line.attempt === place.attempt &&
      line.part === start.part + parts.length;
    if (!fits) break;
    lastHash = line.hash;
    sound.push(text);
    parts.push({ inputs: line.inputs, times: line.times });
  }
  return { lines: sound, parts, lastHash };
}

/** Concatenates several parts of a recording. */
export function joinInputs(parts: readonly Inputs[]): Inputs {
  const inputs: Input[] = [];
  const times: number[] = [];
  for (const part of parts) {
    for (const input of part.inputs) inputs.push(input);
    for (const time of part.times) times.push(time);
  }
  return { inputs, times };
}
