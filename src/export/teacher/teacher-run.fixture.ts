import { encodeRagged } from "../../columns/ragged-rows.ts";
import type { Engine } from "../../engine/engine.ts";
import { openTeacher } from "../../teacher/open-teacher.ts";
import { scoreRun, type ScoringResult } from "../../teacher/score-run.ts";

/** Returns the invented teacher's logprob of a token. A binary fraction, so that 32 bits have it exactly. */
export function taughtLogprob(ids: readonly number[], token: number): number {
  const own = token % 3;
  return own < 2 ? -0.25 * (own + 1) : -4 - (ids[token]! % 8) / 8;
}

/** Returns the invented teacher's most probable ids in a token's place. Each third place lacks the token itself. */
export function taughtTop(
  ids: readonly number[],
  token: number,
  count: number,
): readonly { readonly id: number; readonly logprob: number }[] {
  const first = ids[token]! + [0, 199, 7][token % 3]!;
  return Array.from({ length: count }, (_, rank) => ({
    id: (first + rank) % 200,
    logprob: -0.25 * (rank + 1),
  }));
}

const engine: Engine = {
  kind: "fake",
  generate: () => Promise.reject(new Error("no turn is sampled")),
  describe: async () => ({
    kind: "fake",
    model: "models/large",
    policyVersion: "1",
    logprobConvention: "raw",
  }),
  score: async ({ ids, from = 1 }) =>
    await Promise.resolve(
      Array.from({ length: ids.length - from }, (_, row) => taughtLogprob(ids, from + row)),
    ),
  async scoreTop({ ids, from = 1, topCount, sampling }) {
    const logprobs = await this.score!({ ids, from, sampling });
    const rows = logprobs.map((_, row) => taughtTop(ids, from + row, topCount));
    return {
      logprobs,
      tops: encodeRagged({
        counts: Uint32Array.from(rows, ({ length }) => length),
        ids: Int32Array.from(rows.flat(), ({ id }) => id),
        logprobs: Float32Array.from(rows.flat(), ({ logprob }) => logprob),
      }),
    };
  },
  close: async () => {},
};

/** Scores the rows of a run's folder by an invented teacher. */
export async function addTeacher(
  dir: string,
  { name, topCount = 0 }: { readonly name: string; readonly topCount?: number },
): Promise<ScoringResult> {
  await using teacher = await openTeacher(dir, { engine, topCount, name });
  return await scoreRun(dir, { writer: teacher.writer, terms: teacher.terms, concurrency: 1 });
}
