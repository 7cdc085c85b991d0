import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EpisodeRow } from "../../src/run/folder/run-folder.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let scratch = "";
const run = (): string => path.join(scratch, "run");

/** Two trees of three attempts, the turns of which are cut short so that they take little time. */
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-recordings-"));
  await callCli([
    "rollout",
    "--split",
    "test",
    "--env",
    "storefront",
    "--engine",
    "reference",
    "--model",
    model,
    "--user",
    "scripted",
    "--tasks",
    "0-1",
    "--samples",
    "3",
    "--branch-at",
    "1,2",
    "--temperature",
    "1",
    "--sampling-seed",
    "1",
    "--max-turns",
    "5",
    "--format",
    "slime",
    "--threads",
    "1",
    "--quiet",
    "--out",
    run(),
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
  const { stdout } = await callCli(["verify", dir]);
  return (JSON.parse(stdout) as { readonly violations: unknown }).violations;
}

describe("a run with branches", () => {
  test("branches the second attempts from the first, verifies, and replays to the byte", async () => {
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
    expect((await callCli(["replay", run()])).stdout).toBe("6 identical, 0 differ\n");
  });

  test.each([
    ["the first turn", "storefront/test/0#0", 0],
    ["a later turn of a fork", "storefront/test/1#2", 2],
  ])("is forked at %s", async (_name, rolloutId, turnIndex) => {
    const out = path.join(scratch, `fork-${turnIndex}`);
    const place = ["--turn", String(turnIndex), "--samples", "2", "--out", out];
    await callCli(["fork", run(), rolloutId, ...place]);
    const forkedFrom = { rolloutId, turnIndex };
    expect((await episodes(out)).map((episode) => episode.forkedFrom)).toEqual([
      forkedFrom,
      forkedFrom,
    ]);
    expect(await findings(out)).toEqual([]);
    expect((await callCli(["replay", out])).stdout).toBe("2 identical, 0 differ\n");
  });

  test("is forked twice, and its forks are, under ids of their own in one file", async () => {
    const folders = ["twice-a", "twice-b", "of-fork"].map((name) => path.join(scratch, name));
    const [one, other, deep] = folders as [string, string, string];
    const fork = async (place: string, id: string, out: string, ...more: string[]) =>
      await callCli(["fork", place, id, "--samples", "2", "--out", out, ...more]);
    await fork(run(), "0#0", one, "--turn", "1", "--seed", "7");
    await fork(run(), "0#0", other, "--turn", "1");
    await fork(one, "storefront/test/0#0@1.7#1", deep, "--turn", "2", "--seed", "7");
    expect((await episodes(one)).map(({ rolloutId, groupId }) => [rolloutId, groupId])).toEqual([
      ["storefront/test/0#0@1.7#0", "storefront/test/0#0@1.7"],
      ["storefront/test/0#0@1.7#1", "storefront/test/0#0@1.7"],
    ]);
    const deepIds = (await episodes(deep)).map(({ rolloutId }) => rolloutId);
    expect(deepIds[1]).toBe("storefront/test/0#0@1.7#1@2.7#1");
    const verified = await callCli(["verify", run(), ...folders]);
    const found = jsonLines(verified.stdout).map((line) => line["violations"]);
    expect([verified.status, found]).toEqual([0, [[], [], [], []]]);
    const rows = await Promise.all(
      [run(), ...folders].map(
        async (dir) => await readFile(path.join(dir, "samples.jsonl"), "utf8"),
      ),
    );
    const file = path.join(scratch, "all.jsonl");
    await writeFile(file, rows.join(""));
    const whole = await callCli(["verify", file]);
    expect(JSON.parse(whole.stdout)).toMatchObject({ samples: 12, violations: [] });
    // The folder keeps the drawn seed, so the same fork resumes there and has nothing left to play.
    const before = await readFile(path.join(other, "samples.jsonl"), "utf8");
    expect((await fork(run(), "0#0", other, "--turn", "1")).status).toBe(0);
    expect(await readFile(path.join(other, "samples.jsonl"), "utf8")).toBe(before);
    const refused = await fork(run(), "0#0", other, "--turn", "1", "--seed", "8");
    expect([refused.status, refused.stderr]).toEqual([
      2,
      expect.stringContaining("forkedFrom was"),
    ]);
  });

  test("verifies over several passes", async () => {
    const out = path.join(scratch, "passes");
    await callCli([
      "rollout",
      "--split",
      "test",
      "--env",
      "storefront",
      "--engine",
      "reference",
      "--model",
      model,
      "--user",
      "scripted",
      "--tasks",
      "0-1",
      "--samples",
      "2",
      "--branch-at",
      "1",
      "--epochs",
      "2",
      "--sampling-seed",
      "1",
      "--max-turns",
      "2",
      "--threads",
      "1",
      "--max-tokens-per-turn",
      "8",
      "--quiet",
      "--out",
      out,
    ]);
    expect((await episodes(out)).filter(({ forkedFrom }) => forkedFrom).length).toBe(4);
    expect(await findings(out)).toEqual([]);
  });

  test("bundles one episode, which another folder replays", async () => {
    const file = path.join(scratch, "bundle.json");
    await callCli(["bundle", run(), "0#1", "--out", file]);
    expect((await callCli(["replay", file, "--model", model])).stdout).toBe(
      "1 identical, 0 differ\n",
    );
  });

  test("is bundled and played again even if its folder has a file's name", async () => {
    const folder = path.join(scratch, "folder.json");
    await cp(run(), folder, { recursive: true });
    const file = path.join(scratch, "of-folder.json");
    expect((await callCli(["bundle", folder, "0#1", "--out", file])).status).toBe(0);
    expect((await callCli(["replay", folder])).stdout).toBe("6 identical, 0 differ\n");
  });

  test("says how many finished episodes are recorded no more", async () => {
    const spoiled = path.join(scratch, "spoiled");
    await cp(run(), spoiled, { recursive: true });
    const file = path.join(spoiled, "recording.jsonl");
    const lines = (await readFile(file, "utf8")).split("\n");
    const [first, second] = (await episodes(spoiled)).map(({ rolloutId }) => rolloutId);
    const kept = lines.flatMap((line) => {
      const { rolloutId, type } = JSON.parse(line || "{}") as { rolloutId?: string; type?: string };
      if (rolloutId === first) return [];
      // The start of an attempt is damaged.
      return [rolloutId === second && type === "begin" ? line.slice(0, -1) : line];
    });
    await writeFile(file, kept.join("\n"));
    const why = "its recording is damaged from its first line on";
    expect((await callCli(["replay", spoiled])).stdout).toBe(
      `${second}: not recorded: ${why}\n4 identical, 0 differ, 2 not recorded\n`,
    );
  });

  test("says of which episodes the recording is of an attempt before", async () => {
    const later = path.join(scratch, "later");
    await cp(run(), later, { recursive: true });
    const file = path.join(later, "episodes.jsonl");
    const [first, ...others] = (await readFile(file, "utf8")).split("\n") as [string, ...string[]];
    const { rolloutId } = JSON.parse(first) as EpisodeRow;
    await writeFile(file, [first.replace('"attempt":1', '"attempt":2'), ...others].join("\n"));
    const why = "its recording is of attempt 1, and the episode is attempt 2: ";
    const { stdout, status } = await callCli(["replay", later]);
    expect(stdout).toContain(`${rolloutId}: not recorded: ${why}`);
    expect([stdout.split("\n").at(-2), status]).toEqual([
      "5 identical, 0 differ, 1 not recorded",
      0,
    ]);
    const rescored = await callCli(["replay", later, "--rescore-reward"]);
    expect(rescored.stdout).toBe(
      "5 scored again, 0 rewards change, 0 cannot be played again, 1 not recorded\n",
    );
    const alone = await callCli(["replay", later, rolloutId, "--rescore-reward"]);
    expect(alone.stdout).toContain(`${rolloutId}: not recorded: ${why}`);
    expect([alone.stdout.split("\n").at(-2), alone.status]).toEqual([
      "0 scored again, 0 rewards change, 0 cannot be played again, 1 not recorded",
      1,
    ]);
    const forked = await callCli(["fork", later, rolloutId, "--turn", "1"]);
    expect([forked.status, forked.stderr]).toEqual([
      2,
      expect.stringContaining(`Cannot fork ${rolloutId}: ${why}`),
    ]);
  });

  test("says of which episodes the recording is another run's", async () => {
    const [from, to] = [path.join(scratch, "twice-b"), path.join(scratch, "twice-a")];
    const rows = await readFile(path.join(to, "recording.jsonl"), "utf8");
    const id = (await episodes(to))[0]!.rolloutId;
    const other = (await episodes(from))[0]!.rolloutId;
    const copied = (await readFile(path.join(from, "recording.jsonl"), "utf8")).replaceAll(
      JSON.stringify(other),
      JSON.stringify(id),
    );
    const isOther = (line: string): boolean => !line.includes(JSON.stringify(id));
    const file = path.join(to, "recording.jsonl");
    const lines = [
      ...rows.split("\n").filter(isOther),
      ...copied.split("\n").filter((line) => !isOther(line)),
    ];
    await writeFile(file, `${lines.filter((line) => line !== "").join("\n")}\n`);
    const { stdout, status } = await callCli(["replay", to]);
    expect(stdout).toContain(`${id}: differs: it was recorded in another run, `);
    expect([stdout.split("\n").at(-2), status]).toEqual(["1 identical, 1 differ", 1]);
    const forked = await callCli(["fork", to, id, "--turn", "1", "--samples", "1"]);
    expect([forked.status, forked.stderr]).toEqual([2, expect.stringContaining("; fork it there")]);
  });

  test("says of which episodes the recording is damaged", async () => {
    const damaged = path.join(scratch, "fork-0");
    const file = path.join(damaged, "recording.jsonl");
    const lines = (await readFile(file, "utf8")).split("\n");
    const at = lines.findIndex(
      (line) =>
        line.includes('"type":"inputs"') &&
        line.includes('#1","attempt"') &&
        line.includes('"part":1'),
    );
    lines[at] = lines[at]!.slice(0, 300);
    await writeFile(file, lines.join("\n"));
    const { stdout, status } = await callCli(["replay", damaged]);
    expect(stdout).toMatch(/^storefront\/test\/0#0@0\.\d+#1: /m);
    expect(stdout).toMatch(/the recording ends where .*, and the episode went on: it is damaged\n/);
    expect(stdout).toContain("1 identical, 1 differ");
    expect(status).toBe(1);
  });
});

describe("a run that a program started", () => {
  test("refuses to replay or fork an episode with missing records", async () => {
    const own = path.join(scratch, "own");
    await cp(run(), own, { recursive: true });
    const file = path.join(own, "run.json");
    const manifest = JSON.parse(await readFile(file, "utf8")) as { found: object };
    const unknown = (what: string, doing: string, remedy: string): string =>
      `turnwright: Cannot ${doing}: run.json does not name ${what} that it was played with, as where a program ` +
      `started the run; ${remedy} (docs/runs.md)\n`;
    const again = "play it again from that program, by replayEpisode() with its own setup";
    await writeFile(file, JSON.stringify({ ...manifest, found: {} }));
    expect(await callCli(["replay", own])).toMatchObject({
      status: 2,
      stderr: unknown("the environment", "play the run again", again),
    });
    const id = "storefront/test/0#0";
    expect(await callCli(["fork", own, id, "--turn", "1"])).toMatchObject({
      status: 2,
      stderr: unknown(
        "the environment",
        `fork ${id}`,
        "give that program's source the task with a `fork`",
      ),
    });
    const { engine: _engine, ...found } = manifest.found as Record<string, unknown>;
    await writeFile(file, JSON.stringify({ ...manifest, found }));
    expect(await callCli(["replay", own])).toMatchObject({
      status: 2,
      stderr: unknown("the engine (found.engine)", "play the run again", again),
    });
  });
});
