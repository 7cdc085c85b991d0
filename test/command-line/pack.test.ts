import { hash } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readRun } from "../../src/api/read-run.ts";
import { RunLock } from "../../src/run/disk/run-lock.ts";
import { RunIndex } from "../../src/viewer/source/run-index.ts";
import { callCli } from "../support/call-cli.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

const play = (out: string): readonly string[] =>
  [
    `rollout --env storefront --split test --engine reference --model ${model} --user scripted --tasks 0-1 --samples 2`,
    "--temperature 1 --sampling-seed 1 --max-turns 5 --format slime --threads 1 --quiet --out",
    out,
  ].flatMap((words) => words.split(" "));

const packedNames = ["episodes", "recording", "samples", "samples.slime"].map(
  (name) => `${name}.jsonl.gz`,
);

let scratch = "";
const run = (): string => path.join(scratch, "run");
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-pack-"));
  await callCli(play(run()));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** Returns a copy of the run, which tests may change. */
async function copyOf(name: string): Promise<string> {
  const dir = path.join(scratch, name, "run");
  await cp(run(), dir, { recursive: true });
  return dir;
}

async function bytesOf(dir: string): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(dir)).toSorted();
  const read = async (name: string) =>
    [name, await readFile(path.join(dir, name), "base64")] as const;
  return Object.fromEntries(await Promise.all(names.map(read)));
}

/** Returns the status of each command that reads a run, and a hash of what it prints and writes. */
async function readings(dir: string): Promise<Readonly<Record<string, string>>> {
  const out = path.join(dir, "..", "out.json");
  const found: Record<string, string> = {};
  const commands: readonly (readonly string[])[] = [
    ["verify", dir],
    ["verify", path.join(dir, "samples.jsonl")],
    ["verify", path.join(dir, "samples.slime.jsonl"), "--as", "slime"],
    ["verify", path.join(dir, "samples.slime.jsonl"), "--as", "slime", "--run", dir],
    ["replay", dir, "--json"],
    ["replay", dir, "--rescore-reward"],
    ["show", dir],
    ["show", dir, "0#0"],
    ["show", dir, "0#0", "--tokens"],
    ["show", dir, "1#1", "--json"],
    ["report", dir, "--json"],
    ["compare", dir, run(), "--json"],
    ["bundle", dir, "1#0", "--out", out],
    ["view", dir, "--export", out],
    ...["slime", "trl", "skyrl", "parquet", "csv"].map((to) => [
      "export",
      dir,
      "--to",
      to,
      "--out",
      out,
    ]),
  ];
  for (const args of commands) {
    await rm(out, { force: true });
    const { status, stdout, stderr } = await callCli(args);
    const written = await readFile(out, "base64").catch(() => "");
    const result = JSON.stringify({ stdout, stderr, written });
    found[args.slice(0, 5).join(" ")] = `${status} ${hash("sha256", result)}`;
  }
  return found;
}

test("every command reads a packed run as before, and unpack restores it to the byte", async () => {
  const dir = await copyOf("all");
  const before = await readings(dir);
  for (const [args, result] of Object.entries(before)) {
    expect(result, args).toMatch(/^0 /);
  }
  const bytes = await bytesOf(dir);
  const packed = await callCli(["pack", dir]);
  expect(packed).toMatchObject({ status: 0, stderr: "" });
  expect(packed.stdout).toMatch(/\/samples\.jsonl: 0\.\d MB, packed 0\.\d MB\n/);
  const names = (await readdir(dir)).filter((name) => /recording|samples|episodes/.test(name));
  expect(names.toSorted()).toEqual(packedNames.toSorted());
  expect(await readings(dir)).toEqual(before);
  expect((await callCli(["pack", dir])).stdout).toBe(packed.stdout);
  expect(await callCli(["unpack", dir])).toMatchObject({ status: 0, stdout: packed.stdout });
  expect(await bytesOf(dir)).toEqual(bytes);
  expect((await callCli(["unpack", dir])).stdout).toBe(`${dir}: no file is packed\n`);
});

test("programs and the viewer read a packed run as before", async () => {
  const read = async (dir: string) => {
    const stored = await readRun(dir);
    const index = await RunIndex.open(dir, { key: "run" });
    const ids = index.entries.map(({ rolloutId }) => rolloutId);
    const [episodes, samples]: unknown[][] = [[], []];
    for await (const episode of stored.episodes()) episodes!.push(episode);
    for await (const sample of stored.samples()) samples!.push(sample);
    return {
      episodes,
      samples,
      entries: index.entries,
      lines: await Promise.all(ids.map(async (id) => (await index.episodeLine(id))?.toString())),
      rows: await Promise.all(ids.map(async (id) => (await index.rowLine(id, 0))?.toString())),
      versions: await index.versions(),
      search: await index.search("order"),
    };
  };
  const dir = await copyOf("programs");
  const before = await read(dir);
  expect(before.rows).toHaveLength(4);
  await callCli(["pack", dir]);
  expect(await read(dir)).toEqual(before);
});

test("an open viewer follows a run that is packed and unpacked", async () => {
  const dir = await copyOf("followed");
  const index = await RunIndex.open(dir, { key: "run" });
  const line = async () => (await index.episodeLine("storefront/test/1#1"))?.toString();
  const before = await line();
  expect(before).toContain('"rolloutId":"storefront/test/1#1"');
  for (const command of ["pack", "unpack"]) {
    await callCli([command, dir]);
    expect(await line()).toBe(before);
    await index.refresh();
    expect(await line()).toBe(before);
  }
});

test("a start that would continue a packed run names the command that unpacks it", async () => {
  const dir = await copyOf("continued");
  await callCli(["pack", dir]);
  const bytes = await bytesOf(dir);
  const refused = await callCli(play(dir));
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain(
    `Cannot continue the run in ${dir}: it is packed (${path.join(dir, "episodes.jsonl.gz")}); ` +
      `call \`turnwright unpack ${dir}\` first`,
  );
  expect(await bytesOf(dir)).toEqual(bytes);
  await callCli(["unpack", dir]);
  expect((await callCli(play(dir))).status).toBe(0);
});

test("a run that another process writes is neither packed nor unpacked", async () => {
  const dir = await copyOf("locked");
  const bytes = await bytesOf(dir);
  await using _lock = await RunLock.take(dir);
  for (const command of ["pack", "unpack"]) {
    const { status, stderr } = await callCli([command, dir]);
    expect(status).toBe(2);
    expect(stderr).toContain(dir);
    expect(await bytesOf(dir)).toMatchObject(bytes);
  }
});

test("a folder without a run is refused, and nothing is written there", async () => {
  const dir = await mkdtemp(path.join(scratch, "other-"));
  for (const command of ["pack", "unpack"]) {
    expect(await callCli([command, dir])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(
        `Cannot ${command} ${dir}: it has no run.json, expected a run's folder`,
      ) as string,
    });
  }
  expect(await readdir(dir)).toEqual([]);
});

test("a damaged packed file is named with the place of the damage", async () => {
  const dir = await copyOf("damaged");
  await callCli(["pack", dir]);
  const file = path.join(dir, "samples.jsonl.gz");
  const bytes = await readFile(file);
  bytes[1000]! ^= 0xff;
  await writeFile(file, bytes);
  for (const args of [
    ["verify", dir],
    ["verify", path.join(dir, "samples.jsonl")],
    ["export", dir, "--to", "slime"],
    ["replay", dir],
    ["show", dir, "0#0", "--tokens"],
    ["unpack", dir],
  ]) {
    const { status, stderr } = await callCli(args);
    expect(status, args[0]).toBe(2);
    expect(stderr, args[0]).toMatch(
      new RegExp(`Cannot read ${file}: bytes 0 to \\d+ are damaged, which hold bytes 0 to \\d+`),
    );
  }
  expect(await readdir(dir)).toContain("samples.jsonl.gz");
});

test("a file that exists packed and unpacked, and differs, is left to the user", async () => {
  const dir = await copyOf("both");
  const original = await readFile(path.join(dir, "samples.jsonl"));
  await callCli(["pack", dir]);
  await writeFile(path.join(dir, "samples.jsonl"), original.subarray(1));
  for (const command of ["pack", "unpack"]) {
    const { status, stderr } = await callCli([command, dir]);
    expect(status).toBe(2);
    const file = path.join(dir, "samples.jsonl");
    expect(stderr).toContain(`Cannot ${command} ${file}: it differs from ${file}.gz`);
    expect(await readFile(file)).toEqual(original.subarray(1));
    expect(await readdir(dir)).toContain("samples.jsonl.gz");
  }
});
