import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ServerFault,
  type SglangTestServer,
  createSeededPolicy,
  startSglangTestServer,
} from "../../src/testing/index.ts";
import { cliFile, jsonLines, runCli } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-writers-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A server that answers a number of requests, and hangs from then on until it is released. */
async function hangingServer(goodCount: number) {
  const state = { isHanging: true };
  const fault = (_request: unknown, index: number): ServerFault | undefined =>
    state.isHanging && index >= goodCount ? { kind: "hang" } : undefined;
  const server = await startSglangTestServer({ policy: createSeededPolicy(), faults: fault });
  return { server, state };
}

async function argsFor(server: SglangTestServer, out: string): Promise<string[]> {
  const lines = path.join(scratch, "lines.json");
  await writeFile(lines, JSON.stringify(["Hi", { text: "Bye.", leaves: true }]));
  return [
    "rollout",
    "--url",
    server.url,
    "--engine-mode",
    "direct",
    "--model",
    smallModelFolder,
    "--parser",
    "qwen25",
    "--split",
    "test",
    "--env",
    "storefront",
    "--tasks",
    "0-5",
    "--concurrency",
    "2",
    "--user",
    "scripted",
    "--user-script",
    lines,
    "--max-tokens-per-turn",
    "4",
    "--on-length",
    "close-and-continue",
    "--out",
    out,
    "--json",
    "--engine-timeout",
    "300",
  ];
}

/** Starts a run, and waits until a number of its episodes is on the disk. */
async function startRun(args: readonly string[], out: string, episodeCount: number) {
  const child = spawn(process.execPath, [cliFile, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const isOver = new Promise<void>((resolve) => child.once("close", () => resolve()));
  while ((await rolloutIds(out, "episodes.jsonl")).length < episodeCount) {
    if (child.exitCode !== null) throw new Error(`the run ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { child, isOver };
}

async function rolloutIds(out: string, name: string): Promise<string[]> {
  const text = await readFile(path.join(out, name), "utf8").catch(() => "");
  // The file that is being written may lack its end.
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  return jsonLines(whole).map((row) => row["rolloutId"] as string);
}

function killAtOnce(child: ChildProcess): void {
  child.kill("SIGKILL");
}

describe("two runs on one folder", () => {
  test("the second is refused, and a killed one's folder is taken over and finished", async () => {
    const { server, state } = await hangingServer(3);
    await using _server = server;
    const out = path.join(scratch, "run");
    const args = await argsFor(server, out);
    const first = await startRun(args, out, 2);
    try {
      const second = await runCli(args);
      expect(second).toMatchObject({ status: 2, stdout: "" });
      expect(second.stderr).toMatch(
        new RegExp(
          `^turnwright: Cannot use ${out}: process ${first.child.pid} on .* since .* \\(turnwright rollout .*\\) is writing there; wait for it or stop it, or choose another --out \\(if it is certainly not a run, remove ${out}/run.lock\\)\n$`,
        ),
      );
    } finally {
      killAtOnce(first.child);
      await first.isOver;
    }
    const before = await rolloutIds(out, "episodes.jsonl");
    state.isHanging = false;
    const third = await runCli(args);
    expect(third.status).toBe(0);
    expect(jsonLines(third.stdout).at(-1)).toMatchObject({
      type: "summary",
      end: "finished",
      finished: 6,
      resumed: before.length,
    });
    const ids = Array.from({ length: 6 }, (_, index) => `storefront/test/${index}#0`);
    expect(await rolloutIds(out, "samples.jsonl")).toEqual(ids);
    expect((await rolloutIds(out, "episodes.jsonl")).toSorted()).toEqual(ids);
    const verified = await runCli(["verify", path.join(out, "samples.jsonl")]);
    expect(jsonLines(verified.stdout)).toMatchObject([{ samples: 6, violations: [] }]);
  });

  test("of two that take over from a killed one at the same moment, one is refused", async () => {
    const { server, state } = await hangingServer(1);
    await using _server = server;
    const out = path.join(scratch, "both");
    const args = await argsFor(server, out);
    const first = await startRun(args, out, 1);
    killAtOnce(first.child);
    await first.isOver;
    // Both hang in their first request, so that neither ends before the other has started.
    const [left, right] = [runCli(args), runCli(args)];
    const refused = await Promise.race([left, right]);
    expect(refused).toMatchObject({ status: 2, stdout: "" });
    expect(refused.stderr).toContain("is writing there");
    state.isHanging = false;
    // The winner's requests hang still: its own time limit would end them, so it is stopped.
    const holder = JSON.parse(await readFile(path.join(out, "run.lock"), "utf8")) as {
      readonly pid: number;
    };
    process.kill(holder.pid, "SIGINT");
    const statuses = (await Promise.all([left, right])).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([130, 2]));
    const last = await runCli(args);
    expect(jsonLines(last.stdout).at(-1)).toMatchObject({ end: "finished", finished: 6 });
    expect(await rolloutIds(out, "samples.jsonl")).toHaveLength(6);
  });
});
