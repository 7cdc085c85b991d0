import type { Sample } from "../trajectory/sample.ts";
import type { ExportMember } from "./exporter.ts";
import { readRunGroups } from "./read-run-groups.ts";

/**
 * Yields all training rows of a run's finished episodes in the plan's order, including those
 * without a reward.
 */
export async function* readTableRows(dir: string): AsyncGenerator<Sample> {
  for await (const { samples } of readFinished(dir)) yield* samples;
}

/** Yields the finished attempts of a run in the plan's order. */
export async function* readFinished(
  dir: string,
): AsyncGenerator<ExportMember & { readonly episode: NonNullable<ExportMember["episode"]> }> {
  const run = await readRunGroups(dir);
  for await (const members of run.groups("all")) {
    for (const member of members) {
      const { episode } = member;
      if (episode !== undefined) yield { ...member, episode };
    }
  }
}
