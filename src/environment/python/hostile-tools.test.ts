import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import { packageFile } from "../../files/package-file.ts";
import type { World } from "../environment.ts";
import {
  call,
  noPython,
  openPython,
  type OpenedEnvironment,
} from "./python-environment.fixture.ts";

if (noPython !== undefined) console.log(`skipped: ${noPython}`);

const file = "hostile_env.fixture.py";

describe.skipIf(noPython !== undefined)("tools in Python that misbehave", () => {
  let opened: OpenedEnvironment;
  let world: World;
  beforeAll(async () => {
    opened = await openPython(file);
    world = await opened.world();
  });
  afterAll(async () => await opened?.[Symbol.asyncDispose]());

  async function failureOf(tool: string): Promise<RolloutError> {
    const failure = await call(world, tool).catch((error: unknown) => error);
    expect(failure, tool).toBeInstanceOf(RolloutError);
    return failure as RolloutError;
  }

  /** The process still plays, and the open episode still has its state. */
  async function expectAlive(): Promise<void> {
    expect(await call(world, "echo", { text: "é😀" })).toMatchObject({ observation: "é😀" });
  }

  test("what they print goes to stderr", async () => {
    expect(await call(world, "prints")).toMatchObject({ observation: "ok" });
    await expect.poll(() => opened.output.join("")).toContain("printed by a child");
    expect(opened.output.join("")).toContain("printed by a tool\n");
    expect(opened.output.join("")).toContain("written to descriptor 1\n");
    await expectAlive();
  });

  test("half of a surrogate pair is U+FFFD in Python", async () => {
    expect(await call(world, "echo", { text: "a\ud800 \\ud800" })).toMatchObject({
      observation: "a\ufffd \\ud800",
    });
  });

  test("a refused call is undone", async () => {
    expect(await call(world, "add_and_refuse")).toEqual({
      observation: "Error: not today",
      from: "tool",
      source: "add_and_refuse",
      isError: true,
    });
    expect(await call(world, "read_count")).toMatchObject({ observation: "0" });
  });

  test.each([
    ["broken", "KeyError: 'missing'", ":62"],
    ["reads_input", "EOFError: EOF when reading a line", ":56"],
    ["exits", "SystemExit: 3", ":68"],
    ["interrupts", "KeyboardInterrupt", ":74"],
    ["stops_iteration", "RuntimeError: coroutine raised StopIteration", ":86"],
    ["raises_unprintable", "Unprintable: its message cannot be written", ":244"],
    ["raises_half", "ValueError: \\ud800", ":250"],
  ])("%s fails the episode with its line: %s", async (tool, what, line) => {
    const { code, message } = await failureOf(tool);
    expect(code).toBe("environment/exception");
    expect(message).toContain(
      `Tool ${tool} of hostile (hostile_env.fixture.py:17) in task hostile/test/0 threw`,
    );
    expect(message).toContain(what);
    expect(message).toContain(`hostile_env.fixture.py${line}`);
    await expectAlive();
  });

  test("endless recursion fails the episode", async () => {
    expect((await failureOf("recurses")).message).toContain("RecursionError");
    await expectAlive();
  });

  test.each(["loops", "sleeps", "waits", "blocks"])(
    "%s is interrupted at its time limit, and its line is named",
    async (tool) => {
      const { code, message, retryable } = await failureOf(tool);
      expect(code).toBe("environment/timeout");
      expect(retryable).toBe(true);
      expect(message).toMatch(/no answer within 500 ms; it was at hostile_env\.fixture\.py:\d+$/);
      await expectAlive();
    },
  );

  test.each([
    ["returns_nan", "environment/bad-result", "Out of range float values"],
    ["returns_object", "environment/bad-result", "at hostile_env.fixture.py:179"],
    ["returns_deep", "environment/bad-result", "maximum recursion depth exceeded"],
    ["returns_much", "environment/full", "expected at most 16,777,216"],
  ])("%s is %s", async (tool, code, what) => {
    const failure = await failureOf(tool);
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(what);
    await expectAlive();
  });

  test.each([
    ["forks", "forked"],
    ["forks_a_pool", "[1, 2]"],
    ["spawns_a_pool", "[1, 2]"],
    ["closes_stdout", "ok"],
    ["returns_half", "\ufffd"],
  ])("%s does not disturb the protocol", async (tool, observation) => {
    expect(await call(world, tool)).toMatchObject({ observation });
    await expectAlive();
  });

  test("errors of threads and tasks that no call waits for are reported", async () => {
    opened.troubles.length = 0;
    await call(world, "thread_fails");
    await call(world, "task_fails");
    await expect.poll(() => opened.troubles.length).toBe(2);
    expect(opened.troubles[0]).toMatch(/fixture\.py:\d+: ZeroDivisionError: division by zero$/);
    expect(opened.troubles[1]).toMatch(/fixture\.py:\d+: ValueError: no call waits for this$/);
  });

  test("a call that another one blocks fails alone, and names the line that blocks", async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-holds-"));
    onTestFinished(async () => await rm(dir, { recursive: true }));
    const file = path.join(dir, "released");
    const other = await opened.world();
    const held = call(world, "holds_until", { path: file });
    const blocked = await call(other, "quick").catch((error: unknown) => error);
    expect(blocked).toMatchObject({
      code: "environment/timeout",
      message: expect.stringMatching(
        /no answer within 500 ms, because another episode's code blocks the process; it was at hostile_env\.fixture\.py:\d+$/,
      ) as string,
    });
    await writeFile(file, "");
    expect(await held).toMatchObject({ observation: "released" });
    expect(await call(other, "quick")).toMatchObject({ observation: "quick" });
    await other[Symbol.asyncDispose]();
  });

  test("a score that hangs is interrupted when it is given up, and other episodes keep their process", async () => {
    const scored = await opened.world();
    const { signal } = new AbortController();
    await scored.step({ type: "say", content: "hang" }, { signal });
    const giveUp = new AbortController();
    setTimeout(() => giveUp.abort(new Error("given up")), 200);
    await expect(scored.score({ signal: giveUp.signal })).rejects.toThrow("given up");
    await expectAlive();
    await scored[Symbol.asyncDispose]();
  });

  test.each([
    ["NaN", "grader/bad-score"],
    ["raise", "grader/exception"],
    ["nothing", "grader/bad-score"],
  ])("a score of %j is %s", async (answer, code) => {
    const scored = await opened.world();
    const { signal } = new AbortController();
    await scored.step({ type: "say", content: answer }, { signal });
    await expect(scored.score({ signal })).rejects.toMatchObject({ code });
    await scored[Symbol.asyncDispose]();
  });
});

describe.skipIf(noPython !== undefined)("a Python process that dies", () => {
  test.each([
    ["crashes", "environment/unreachable", "SIGSEGV"],
    ["leaves_at_once", "environment/unreachable", "exit code 7"],
    ["stuck_in_c", "environment/timeout", "no answer within 500 ms"],
    ["ignores_cancelling", "environment/timeout", "no answer within 500 ms"],
  ])(
    "%s: the call is blamed, and the next episode gets a new process",
    async (tool, code, what) => {
      await using opened = await openPython(file);
      const world = await opened.world();
      const failure = (await call(world, tool).catch((error: unknown) => error)) as RolloutError;
      expect(failure).toBeInstanceOf(RolloutError);
      expect(failure.code).toBe(code);
      expect(failure.retryable).toBe(true);
      expect(failure.message).toContain(what);
      expect(failure.message).toMatch(/hostile_env\.fixture\.py:\d+/);
      await world[Symbol.asyncDispose]().then(undefined, () => undefined);
      const next = await opened.world();
      expect(await call(next, "echo", { text: "new" })).toMatchObject({ observation: "new" });
    },
  );

  test("its children do not hide its death", async () => {
    await using opened = await openPython(file);
    const world = await opened.world();
    await expect(call(world, "leaves_children_at_once")).rejects.toMatchObject({
      code: "environment/unreachable",
      message: expect.stringContaining("it ended with exit code 8") as string,
    });
  });

  test("its children end with it", async () => {
    const opened = await openPython(file);
    const world = await opened.world();
    const pid = Number((await call(world, "leaves_a_child")).observation);
    expect(isAlive(pid)).toBe(true);
    await world[Symbol.asyncDispose]();
    await opened[Symbol.asyncDispose]();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
});

/** Opens an environment, calls a tool that starts a child, and prints the pids of both. */
const parent = `
const { createPythonEnvironment } = await import(process.argv[1]);
const environment = await createPythonEnvironment({ environment: process.argv[2], python: "python3" });
const { signal } = new AbortController();
const task = environment.task("test", 0);
const world = await environment.open(task, { user: environment.user.open(task, { seed: 1 }), signal });
for (const name of ["own_pid", "leaves_a_child"]) {
  console.log((await world.step({ type: "call", name, arguments: new Map() }, { signal })).observation);
}
setInterval(() => {}, 1_000);
`;

test.skipIf(noPython !== undefined)(
  "a killed parent takes its Python and their children with it",
  async () => {
    const entry = pathToFileURL(packageFile("dist/src/worlds/index.js")).href;
    const args = ["--input-type=module", "-e", parent, entry, path.join(import.meta.dirname, file)];
    const killed = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const pids: number[] = [];
    for await (const line of createInterface({ input: killed.stdout })) {
      if (pids.push(Number(line)) === 2) break;
    }
    expect(pids.map(isAlive)).toEqual([true, true]);
    killed.kill("SIGKILL");
    await expect.poll(() => pids.map(isAlive)).toEqual([false, false]);
  },
);

function isAlive(pid: number): boolean {
  // Nothing may wait for an orphan process: it stays as a zombie.
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.trim().startsWith("Z");
}
