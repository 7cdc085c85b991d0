import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { Sample } from "../trajectory/sample.ts";
import { exportGroup } from "./export-group.ts";
import type { ExportMember } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Reads a file that `test/export/reference-export.py` read or wrote. */
async function readLines(name: string): Promise<Fields[]> {
  const packed = await readFile(new URL(`../../test/export/${name}.jsonl.gz`, import.meta.url));
  const lines = gunzipSync(packed).toString("utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Fields);
}

/** The golden rows as groups of attempts, with as much of an episode as the rows say. */
async function goldenGroups(): Promise<ExportMember[][]> {
  const groups = new Map<string, ExportMember[]>();
  for (const line of await readLines("samples")) {
    const sample = line as unknown as Sample;
    const group = groups.get(sample.groupId) ?? [];
    groups.set(sample.groupId, group);
    const { rolloutId, groupId, taskId, outcome, stopReason, reward } = sample;
    const place = { groupIndex: groups.size - 1, index: 0 };
    const known = { rolloutId, groupId, taskId, outcome, stopReason };
    const story = episodeRow({ taskIndex: 0, sampleIndex: group.length, ...known });
    const episode = reward === undefined ? story : { ...story, reward };
    group.push({ rolloutId, episode, samples: [sample], place });
  }
  return [...groups.values()];
}

/** Members for human readers, which the golden files do not have. */
const forPeople = new Set(["message", "content"]);

/** Returns the members of our record that the golden record has too. */
function only(ours: unknown, golden: unknown): unknown {
  if (Array.isArray(golden) && Array.isArray(ours)) {
    return ours.map((value: unknown, index) => only(value, golden[index]));
  }
  if (typeof golden !== "object" || golden === null || typeof ours !== "object" || ours === null) {
    return ours;
  }
  return Object.fromEntries(
    Object.entries(golden).map(([name, value]) =>
      forPeople.has(name) ? [name, value] : [name, only((ours as Fields)[name], value)],
    ),
  );
}

const targets = ["trl", "verl", "openrlhf", "areal", "verifiers", "nemo-rl", "skyrl"] as const;

describe("exportGroup() returns the same as the reference exporter", () => {
  test.each(targets)("for %s", async (to: ExportTarget) => {
    const groups = await goldenGroups();
    // NeMo-RL gets groups whose attempts begin alike, and those of the golden file do not.
    const alike = to === "nemo-rl" ? groups.flat().map((member) => [member]) : groups;
    const records = alike.flatMap(
      (members) => exportGroup(to, members, { policyVersion: 0 }).records,
    );
    const { layout } = exporters[to];
    const name = to.replace("-", "_");
    if (layout === "lines") {
      const golden = await readLines(name);
      expect(records).toHaveLength(golden.length);
      for (const [index, wanted] of golden.entries()) {
        expect(only(records[index], wanted)).toEqual(wanted);
      }
      return;
    }
    const [golden] = (await readLines(name)) as [Fields];
    // Each attempt has one row without side columns, so the columns with defaults are left out.
    for (const column of layout.columns.filter((name) => !(name in (layout.defaults ?? {})))) {
      expect(records.map((record) => record[column])).toEqual(golden[column]);
    }
  });
});
