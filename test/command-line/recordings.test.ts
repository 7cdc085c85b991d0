import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EpisodeRow } from "../../src/run/run-folder.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let scratch = "";
const run = (): string => path.join(scratch, "run");

/** Two trees of three attempts, the turns of which are cut short so that they take little time. */
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-recordings-"));
  await runCli([
    ...["rollout", "--env", "storefront", "--engine", "reference", "--model", model],
    ...["--user", "scripted", "--tasks", "0-1", "--samples", "3", "--branch-at", "1,2"],
    ...["--temperature", "1", "--sampling-seed", "1", "--max-turns", "5", "--format", "slime"],
    ...["--threads", "1", "--quiet", "--out", run()],
  ]);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function episodes(dir: string): Promise<readonly EpisodeRow[]> {
  const rows = jsonLines(
    await readFile(path.join(dir, "episodes.jsonl"), "utf8"),
  ) as unknown as EpisodeRow[];
  return rows.toSorted((one, other) => (one.rolloutId < other.rolloutId ? -1 : 1));
}

async function findings(dir: string): Promise<unknown> {
  const { stdout } = await runCli(["verify", dir]);
  return (JSON.parse(stdout) as { readonly violations: unknown }).violations;
}

describe("a run with branches", () => {
  test("has them part from the first attempt, verifies, and plays again to the byte", async () => {
    const parted = (await episodes(run())).map(({ rolloutId, forkedFrom }) => [
      rolloutId,
      forkedFrom?.rolloutId,
      forkedFrom?.turnIndex,
    ]);
    expect(parted).toEqual(
      [0, 1].flatMap((task) => [
        [`storefront/test/${task}#0`, undefined, undefined],
        [`storefront/test/${task}#1`, `storefront/test/${task}#0`, 1],
        [`storefront/test/${task}#2`, `storefront/test/${task}#0`, 2],
      ]),
    );
    expect(await findings(run())).toEqual([]);
    expect((await runCli(["replay", run()])).stdout).toBe("6 identical, 0 differ\n");
  });

  test.each([
    ["the first turn", "storefront/test/0#0", 0],
    ["a later turn of a fork", "storefront/test/1#2", 2],
  ])("is forked at %s", async (_name, rolloutId, turnIndex) => {
    const out = path.join(scratch, `fork-${turnIndex}`);
    const place = ["--turn", String(turnIndex), "--samples", "2", "--out", out];
    await runCli(["fork", run(), rolloutId, ...place]);
    const forkedFrom = { rolloutId, turnIndex };
    expect((await episodes(out)).map((episode) => episode.forkedFrom)).toEqual([
      forkedFrom,
      forkedFrom,
    ]);
    expect(await findings(out)).toEqual([]);
    expect((await runCli(["replay", out])).stdout).toBe("2 identical, 0 differ\n");
  });

  test("has one episode bundled, and played again elsewhere", async () => {
    const file = path.join(scratch, "bundle.json");
    await runCli(["bundle", run(), "0#1", "--out", file]);
    expect((await runCli(["replay", file, "--model", model])).stdout).toBe(
      "1 identical, 0 differ\n",
    );
  });

  test("says of which episodes the recording is damaged", async () => {
    const damaged = path.join(scratch, "fork-0");
    const file = path.join(damaged, "recording.jsonl");
    const lines = (await readFile(file, "utf8")).split("\n");
    const at = lines.findIndex(
      (line) =>
        line.includes('"type":"inputs"') && line.includes('0#1"') && line.includes('"part":1'),
    );
    lines[at] = lines[at]!.slice(0, 300);
    await writeFile(file, lines.join("\n"));
    const { stdout, status } = await runCli(["replay", damaged]);
    expect(stdout).toContain("storefront/test/0#1: ");
    expect(stdout).toMatch(/the recording ends where .*, and the episode went on: it is damaged\n/);
    expect(stdout).toContain("1 identical, 1 differ");
    expect(status).toBe(1);
  });
});
