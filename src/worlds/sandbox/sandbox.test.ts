import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { toPyValue, type PyDict } from "../../python/value.ts";
import { thisMachine, type Machine } from "../../run/process-place.ts";
import { dockerSandboxes } from "./docker-sandboxes.ts";
import { localSandboxes } from "./local-sandboxes.ts";
import { readSandboxFile, writeSandboxFile, type Sandboxes } from "./sandbox.ts";

const { signal } = new AbortController();
const standIn = fileURLToPath(new URL("docker-stand-in.fixture.mjs", import.meta.url));

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-sandbox-"));
  process.env["DOCKER_STAND_IN"] = dir;
  await chmod(standIn, 0o755);
});
afterEach(async () => {
  delete process.env["DOCKER_STAND_IN"];
  await rm(dir, { recursive: true });
});

/** This machine, and whether the process that opened a sandbox is still there. */
function machineWith(isRunning: boolean): Machine {
  return { here: async () => await thisMachine.here(), isRunning: async () => isRunning };
}

const kinds: readonly (readonly [string, (machine?: Machine) => Sandboxes])[] = [
  ["localSandboxes()", (machine) => localSandboxes({ dir, ...(machine && { machine }) })],
  [
    "dockerSandboxes()",
    (machine) =>
      dockerSandboxes({ image: "python", program: standIn, ...(machine && { machine }) }),
  ],
];

/** Folders of sandboxes that are there. */
async function left(): Promise<number> {
  return (await readdir(dir)).filter((name) => name !== "log.txt").length;
}

async function untilGone(pid: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "gone");
      expect(stat === "gone" || stat.includes(") Z ")).toBe(true);
    },
    { timeout: 20_000 },
  );
}

describe.each(kinds)("%s", (_, make) => {
  test("runs commands, whose failures are results, and clears all away", async () => {
    const box = await make().open({ signal });
    const run = async (script: string, options: object = {}) =>
      await box.run(["sh", "-c", script], { signal, ...options });
    const nothing = { end: "exited", exitCode: 0, stdout: "", stderr: "", omittedBytes: 0 };
    expect(await run("echo out; echo err >&2; exit 3")).toEqual({
      ...nothing,
      ...{ exitCode: 3, stdout: "out\n", stderr: "err\n" },
    });
    expect(await run("cat; echo $X", { stdin: "in ", env: { X: "y z" } })).toEqual({
      ...nothing,
      stdout: "in y z\n",
    });
    // Nobody reads what it is given.
    expect(await run("exit 0", { stdin: "x".repeat(1_000_000) })).toEqual(nothing);
    await writeSandboxFile(box, { file: "a/b.txt", text: "ü\n", signal });
    expect(await readSandboxFile(box, { file: "a/b.txt", signal })).toBe("ü\n");
    expect(await readSandboxFile(box, { file: "-none", signal })).toBeUndefined();
    await box[Symbol.asyncDispose]();
    expect(await left()).toBe(0);
    // Once more does no harm.
    await box[Symbol.asyncDispose]();
  });

  test("keeps the beginning of an output without end", async () => {
    await using box = await make().open({ signal });
    const { stdout, omittedBytes, exitCode } = await box.run(
      ["sh", "-c", "yes | head -c 3000000"],
      { signal, maxOutputBytes: 5 },
    );
    expect({ stdout, omittedBytes, exitCode }).toEqual({
      stdout: "y\ny\ny",
      omittedBytes: 2_999_995,
      exitCode: 0,
    });
  });

  test("kills a command whose time is over, with what it started", async () => {
    await using box = await make().open({ signal });
    const script = "sleep 1000 & echo $!; wait";
    const { end, exitCode, stdout } = await box.run(["sh", "-c", script], {
      signal,
      // Docker's stand-in takes a moment to start.
      timeoutMs: make === kinds[0]![1] ? 1_500 : 4_000,
    });
    expect({ end, exitCode }).toEqual({ end: "out-of-time", exitCode: 137 });
    await untilGone(Number(stdout));
    const after = await box.run(["echo", "still there"], { signal });
    expect(after.stdout).toBe("still there\n");
  });

  test("gives up a command when it is called off", async () => {
    await using box = await make().open({ signal });
    const stop = new AbortController();
    const running = box.run(["sh", "-c", "echo $$ > pid; sleep 1000"], { signal: stop.signal });
    running.catch(() => undefined);
    const pid = await vi.waitFor(
      async () => {
        const text = await readSandboxFile(box, { file: "pid", signal });
        expect(text).toMatch(/^\d+\n$/);
        return Number(text);
      },
      { timeout: 20_000 },
    );
    stop.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    await untilGone(pid);
  });

  test("clears away at the next start what a process that died has left", async () => {
    const first = await make().open({ signal });
    const script =
      "setsid sh -c 'echo $$ > pid; exec sleep 1000' < /dev/null > /dev/null 2>&1 & " +
      "until [ -s pid ]; do sleep 0.05; done; cat pid";
    const { stdout } = await first.run(["sh", "-c", script], { signal });
    const alive = make(machineWith(true));
    await alive.open({ signal });
    expect(await left()).toBe(2);
    const later = make(machineWith(false));
    const box = await later.open({ signal });
    expect(await left()).toBe(1);
    expect((await box.run(["echo", "new"], { signal })).stdout).toBe("new\n");
    // What a container ran dies with it; here, it is found by its variable.
    if (make === kinds[0]![1]) await untilGone(Number(stdout));
    else process.kill(Number(stdout), "SIGKILL");
    expect(await later.sweep()).toBe(1);
  });

  test("gives each episode its own, and clears it away with the episode", async () => {
    const boxes = make();
    const environment = defineEnvironment({
      name: "shell",
      tasks: [{ instruction: "Write hello to answer." }],
      policy: "Use the shell.",
      tools: {
        shell: {
          description: "Run a command.",
          parameters: { type: "object", properties: { command: { type: "string" } } },
          async execute(given, _, context) {
            const { command } = given as { command: string };
            const box = await boxes.of(context);
            const options = { signal: context.signal };
            const { stdout, exitCode } = await box.run(["sh", "-c", command], options);
            return { stdout, exitCode };
          },
        },
      },
      score: async (_, _task, context) =>
        (await readSandboxFile(await boxes.of(context), { file: "answer", signal })) === "hello",
    });
    const play = async (...commands: readonly string[]) => {
      const actions = commands.map((command) => ({
        ...({ type: "call", name: "shell" } as const),
        arguments: toPyValue({ command }) as PyDict,
      }));
      const task = environment.task("test", 0);
      return await playActions(environment, { task, user: environment.user, actions }, { signal });
    };
    const good = await play("printf hello > answer", "ls");
    expect(good.steps[1]?.observation).toContain("answer");
    expect(good.score.reward).toBe(1);
    expect((await play("ls | grep answer")).steps[0]?.observation).toBe(
      '{"stdout":"","exitCode":1}',
    );
    expect(await left()).toBe(0);
  });
});

describe("localSandboxes()", () => {
  test("keeps a command within its memory and without our variables", async () => {
    process.env["TURNWRIGHT_TEST_SECRET"] = "no";
    await using box = await localSandboxes({ dir, memoryMiB: 64 }).open({ signal });
    const script = "echo [$TURNWRIGHT_TEST_SECRET]; ulimit -v";
    expect((await box.run(["sh", "-c", script], { signal })).stdout).toBe("[]\n65536\n");
    delete process.env["TURNWRIGHT_TEST_SECRET"];
  });

  test("answers as a shell does where there is no such program, and says where it has no place", async () => {
    await using box = await localSandboxes({ dir }).open({ signal });
    expect(await box.run(["no-such-program"], { signal })).toMatchObject({ exitCode: 127 });
    const file = path.join(dir, "file");
    await writeFile(file, "");
    const error = await localSandboxes({ dir: file })
      .open({ signal })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RolloutError);
    expect((error as Error).message).toContain(`Cannot open a sandbox in ${file}: `);
  });

  test("leaves alone what is not its own", async () => {
    await mkdir(path.join(dir, "holiday-pictures"));
    expect(await localSandboxes({ dir, machine: machineWith(false) }).sweep()).toBe(0);
    expect(await readdir(dir)).toEqual(["holiday-pictures"]);
  });
});

describe("dockerSandboxes()", () => {
  const docker = (options: object = {}) =>
    dockerSandboxes({ image: "python", program: standIn, ...options });

  test("limits what a container may take", async () => {
    await using _box = await docker({ memoryMiB: 64, cpus: 2, cwd: "/work" }).open({ signal });
    const lines = (await readFile(path.join(dir, "log.txt"), "utf8")).trim().split("\n");
    const args = JSON.parse(lines.at(-1)!) as string[];
    expect(JSON.parse(args[4]!.replace("turnwright.owner=", ""))).toEqual(await thisMachine.here());
    expect(args.toSpliced(4, 1)).toEqual([
      ...["run", "--detach", "--rm", "--label", "--memory", "64m", "--memory-swap", "64m"],
      ...["--cpus", "2", "--pids-limit", "256", "--cap-drop", "ALL"],
      ...["--security-opt", "no-new-privileges", "--network", "none", "--workdir", "/work"],
      ...["--entrypoint", "sleep", "python", "3600"],
    ]);
  });

  test("says what Docker says where a container cannot be had, or is gone", async () => {
    const errorOf = async (work: Promise<unknown>) =>
      (await work.catch((thrown: unknown) => thrown)) as Error;
    const missing = await errorOf(docker({ program: "no-such-docker" }).open({ signal }));
    expect(missing).toBeInstanceOf(UsageError);
    expect(missing.message).toContain("Cannot run no-such-docker: spawn no-such-docker ENOENT");
    expect((await errorOf(docker({ image: "no-such-image" }).open({ signal }))).message).toBe(
      "Cannot open a sandbox of image no-such-image: Unable to find image 'no-such-image:latest' locally",
    );
    expect(() => docker({ image: "--privileged" })).toThrow(UsageError);
    const box = await docker().open({ signal });
    // A command that says so itself is no outage.
    const liar = ["sh", "-c", "echo No such container >&2; exit 1"];
    expect((await box.run(liar, { signal })).exitCode).toBe(1);
    await rm(path.join(dir, box.id), { recursive: true });
    const gone = await errorOf(box.run(["true"], { signal }));
    expect(gone).toMatchObject({ code: "environment/unreachable", retryable: true });
    await box[Symbol.asyncDispose]();
    await writeFile(path.join(dir, "down"), "");
    const down = await errorOf(docker().open({ signal }));
    expect(down.message).toContain("Is the docker daemon running?");
  });
});
