import { spawnSync } from "node:child_process";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as library from "../../src/index.ts";
import { textsIn, until } from "../../src/queue/queue.fixture.ts";
import { startSglangTestServer, createTextPolicy } from "../../src/testing/index.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";
import { Started } from "../support/started.ts";

const root = new URL("../../", import.meta.url);
const built = new URL("dist/src/index.js", root);
const { rollout } = (await import(built.href)) as typeof library;
const deskFile = fileURLToPath(new URL("dist/examples/library-desk.js", root));

const what = [
  "rollout",
  "--split",
  "test",
  "--env",
  "storefront",
  "--engine",
  "reference",
  "--model",
  fileURLToPath(new URL("models/storefront-2m", root)),
  "--threads",
  "1",
  "--seed",
  "7",
  "--sampling-seed",
  "7",
  "--max-turns",
  "4",
  "--tasks",
  "0-5",
  "--samples",
  "2",
];

let scratch = "";
const place = (name: string): string => path.join(scratch, name);
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-workers-"));
  const plain = await runCli([...what, "--out", place("plain")]);
  expect(plain.status, plain.stderr).toBe(0);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const rowsOf = async (run: string): Promise<string> =>
  await readFile(place(`${run}/samples.jsonl`), "utf8");

const eventsOf = async (run: string) =>
  jsonLines(await readFile(place(`${run}/events.jsonl`), "utf8"));

const start = (run: string, ...more: readonly string[]): Started =>
  new Started([...what, "--out", place(run), "--workers", "2", ...more]);

/** The process ids of a command's workers. */
function workersOf({ child }: Started): readonly number[] {
  const { stdout } = spawnSync("ps", ["-eo", "pid=,ppid=,args="], { encoding: "utf8" });
  return stdout.split("\n").flatMap((line) => {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    return parent === child.pid && line.includes("worker-process") ? [pid!] : [];
  });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Resolves when a worker has recorded a turn of an attempt that has not ended. */
async function untilRecorded(run: string): Promise<void> {
  const folder = place(`${run}/.workers/recordings`);
  await until(async () => {
    const texts = await textsIn(folder).catch(() => []);
    return texts.some((text) => text.includes('"type":"generation"'));
  });
}

/** Checks the files of a finished run. */
async function expectSame(run: string): Promise<void> {
  expect(await rowsOf(run)).toBe(await rowsOf("plain"));
  await expect(access(place(`${run}/.workers`))).rejects.toThrow("ENOENT");
  for (const command of ["verify", "replay"]) {
    const checked = await callCli([command, place(run)]);
    expect(checked.status, checked.stdout + checked.stderr).toBe(0);
  }
}

describe("a run over worker processes on one machine", () => {
  test("writes the rows of a run in one process", async () => {
    const run = await runCli([...what, "--out", place("two"), "--workers", "2"]);
    expect(run.status, run.stderr).toBe(0);
    expect(run.stderr).toContain("2 worker processes play, up to 32 episodes each at once\n");
    await expectSame("two");
  });

  test("loses nothing when a worker is killed", async () => {
    await using run = start("killed-worker");
    await untilRecorded("killed-worker");
    const [one, two] = workersOf(run);
    process.kill(one!, "SIGKILL");
    await run.until(
      "ended (by SIGKILL): others play its attempts, and a new process takes its place",
    );
    // The other one and the new one.
    await until(() => workersOf(run).some((pid) => pid !== one && pid !== two));
    expect(await run.ended(), run.output).toBe(0);
    await expectSame("killed-worker");
    expect(isRunning(two!)).toBe(false);
  });

  test("continues after its own process was killed, and its workers end with it", async () => {
    await using first = start("killed");
    await untilRecorded("killed");
    const workers = workersOf(first);
    expect(workers).toHaveLength(2);
    await first.end("SIGKILL");
    await until(() => !workers.some(isRunning));
    await using second = start("killed");
    expect(await second.ended(), second.output).toBe(0);
    await expectSame("killed");
    const again = (await eventsOf("killed")).filter(({ type }) => type === "attempt-played-again");
    expect(again.map(({ from }) => from)).toContain("recording");
  });

  test("stops at Ctrl-C, keeps what is finished, and continues", async () => {
    await using first = start("stopped");
    await untilRecorded("stopped");
    const workers = workersOf(first);
    // A terminal sends the signal to all processes of the command.
    for (const pid of workers) process.kill(pid, "SIGINT");
    expect(await first.end("SIGINT"), first.output).toBe(130);
    expect(first.output).toContain("stopping: finished episodes are kept");
    expect(first.output).not.toContain("takes its place");
    expect(workers.filter(isRunning)).toEqual([]);
    await using second = start("stopped");
    expect(await second.ended(), second.output).toBe(0);
    await expectSame("stopped");
  });

  test("reports a worker that cannot start, once", async () => {
    const env = place("licensed.mjs");
    await writeFile(
      env,
      `if (process.argv[1].includes("worker-process")) throw new Error("no license here");\n` +
        `export { default } from ${JSON.stringify(pathToFileURL(deskFile).href)};\n`,
    );
    const run = await runCli([
      ...what.map((text) => (text === "storefront" ? env : text === "0-5" ? "0-1" : text)),
      "--out",
      place("licensed"),
      "--workers",
      "2",
    ]);
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(
      /^turnwright: Cannot start worker [12] of 2: .*no license here.*\n$/,
    );
  });

  test("refuses a value that is not a number of workers", async () => {
    const faultOf = async (...flags: readonly string[]) => {
      const { status, stderr } = await callCli([...what, "--out", place("none"), ...flags]);
      return { status, stderr };
    };
    for (const count of ["0", "-1", "1.5", "many", "1001"]) {
      expect(await faultOf("--workers", count)).toEqual({
        status: 2,
        stderr:
          `turnwright: option '--workers <n>' argument '${count}' is invalid. expected a whole number of at least 1 ` +
          "and at most 1000, or auto (see --help)\n",
      });
    }
    expect(await faultOf("--workers", "2", "--queue", "redis://127.0.0.1:1")).toEqual({
      status: 2,
      stderr:
        "turnwright: Cannot use --workers with --queue: expected one of the two; workers of a queue are started " +
        "with `turnwright worker`\n",
    });
    const file = place("config.json");
    await writeFile(file, JSON.stringify({ workers: "all" }));
    expect((await faultOf("--config", file)).stderr).toBe(
      `turnwright: Cannot use "workers" in ${file}: "all", expected a number or auto\n`,
    );
  });

  test("gives a program its groups", async () => {
    const policy = await createTextPolicy(() => [], { modelDir: smallModelFolder });
    await using server = await startSglangTestServer({ policy });
    const settings = {
      environment: deskFile,
      url: server.url,
      model: smallModelFolder,
      samples: 2,
    };
    const rows: string[] = [];
    const messages: string[] = [];
    const options = { ...settings, workers: "auto", out: place("program") } as const;
    for await (const { episodes } of rollout({
      ...options,
      onQueue: (text) => messages.push(text),
    })) {
      for (const { samples } of episodes) for (const row of samples) rows.push(JSON.stringify(row));
    }
    expect(rows).toHaveLength(4);
    expect(messages).toEqual([expect.stringMatching(/^\d+ worker process(?:es)? plays?, /)]);
    for await (const _ of rollout({ ...settings, out: place("alone") }));
    expect(await rowsOf("program")).toBe(await rowsOf("alone"));
    await expect(rollout({ ...options, out: undefined })).rejects.toThrow("Missing out: ");
  });
});
