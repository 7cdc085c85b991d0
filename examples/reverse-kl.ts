import { readFile } from "node:fs/promises";
import path from "node:path";
import { readRun } from "turnwright";
import type { TeacherParts } from "turnwright/columns";
import { openColumnFolder } from "turnwright/run";

/** A row with a reward for each trained token that pulls the policy towards the teacher. */
export interface TaughtRow {
  readonly rolloutId: string;
  readonly segment: number;
  /** Indexes of the trained tokens in the row. */
  readonly places: readonly number[];
  /** `rewards[i]` is the teacher's logprob minus the policy's, in nats, of the token at `places[i]`. */
  readonly rewards: readonly number[];
}

/**
 * Reads the rows of a run that a teacher has scored. The mean of minus the rewards estimates the reverse
 * KL divergence of the policy from the teacher, per token.
 */
export async function* taughtRows(dir: string, teacher: string): AsyncGenerator<TaughtRow> {
  const text = await readFile(path.join(dir, "teachers", `${teacher}.jsonl`), "utf8");
  const scored = new Map<string, TeacherParts>();
  for (const line of text.trimEnd().split("\n")) {
    const { rolloutId, segment, columns } = JSON.parse(line) as {
      readonly rolloutId: string;
      readonly segment: number;
      readonly columns: TeacherParts;
    };
    scored.set(`${segment} ${rolloutId}`, columns);
  }
  await using columns = openColumnFolder(dir);
  const run = await readRun(dir);
  for await (const { rolloutId, segment, lossMask, logprobs } of run.samples()) {
    const part = scored.get(`${segment} ${rolloutId}`)?.teacherLogprobs;
    if (part === undefined) continue;
    const bytes = Uint8Array.from(await columns.read(part));
    const ofTeacher = new Float32Array(bytes.buffer);
    const places = lossMask.flatMap((mask, place) => (mask === 1 ? [place] : []));
    const rewards = places.map((place) => ofTeacher[place - part.from]! - logprobs[place]!);
    yield { rolloutId, segment, places, rewards };
  }
}
