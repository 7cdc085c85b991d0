import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { writeColumnRun } from "../../export/columns/column-run.fixture.ts";
import { prepareGroup } from "../../export/prepare-group.ts";
import { readRunGroups } from "../../export/read-run-groups.ts";
import { openColumnFolder } from "../../run/columns/column-folder.ts";
import { aglEvents, aglRules } from "./agl-events.ts";

interface Data {
  readonly response: { readonly prompt_token_ids: readonly number[] };
  readonly routed_experts?: string;
}

test("the last call of each row has the routes of the complete row", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-agl-events-"));
  try {
    const routedExperts = { layerCount: 3, perToken: 2, expertCount: 8 };
    const truth = await writeColumnRun(dir, { routedExperts });
    await using source = openColumnFolder(dir);
    const run = await readRunGroups(dir);
    const columns = { specs: run.columns, source };
    const found: Record<string, (readonly number[] | undefined)[]> = {};
    for await (const members of run.groups()) {
      for (const attempt of prepareGroup(members, { rules: aglRules }).attempts) {
        const own = (found[attempt.rolloutId] = []) as (readonly number[] | undefined)[];
        for await (const event of aglEvents(attempt, { model: "m", columns })) {
          if (event.event_type !== "model_request") continue;
          const { routed_experts: text } = event.data as Data;
          own.push(text === undefined ? undefined : [...Buffer.from(text, "base64").subarray(128)]);
        }
      }
    }
    const routesOf = (rolloutId: string, segment = 0) =>
      truth
        .find((row) => row.rolloutId === rolloutId && row.segment === segment)!
        .routedExperts!.flat(2);
    expect(found["lamps/train/0#0"]).toEqual([undefined, undefined, routesOf("lamps/train/0#0")]);
    expect(found["lamps/train/3#0"]).toEqual([
      undefined,
      routesOf("lamps/train/3#0"),
      routesOf("lamps/train/3#0", 1),
      undefined,
      routesOf("lamps/train/3#0", 2),
    ]);
  } finally {
    await rm(dir, { recursive: true });
  }
});
