import type { Inputs } from "../../episode/inputs/input.ts";
import type { PackedRecording } from "../packed/packed-episode.ts";
import { readInputs } from "./recording-line.ts";

/** Reads the inputs in lines that another process recorded and checked. */
export function readPacked({ bytes }: PackedRecording): readonly Inputs[] {
  const lines = bytes.toString("utf8").split("\n").slice(0, -1);
  return lines.map((line) => {
    const { inputs, times } = readInputs(JSON.parse(line));
    return { inputs, times };
  });
}
