import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { isRefusal } from "../../environment/refuse.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { toPyValue, type PyDict } from "../../../packages/python-values/src/value.ts";
import { thisMachine, type Machine } from "../../run/disk/process-place.ts";
import { findDockerDaemon } from "./docker-daemon.fixture.ts";
import { createDockerSandboxes } from "./docker-sandboxes.ts";
import { createLocalSandboxes } from "./local-sandboxes.ts";
import { readSandboxFile, writeSandboxFile, type Sandbox, type Sandboxes } from "./sandbox.ts";

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

/**
 * This machine under another boot id, so that only this test's sandboxes count as its own.
 * `isRunning` is the state of every sandbox's opener.
 */
function machineWith(isRunning: boolean): Machine {
  return {
    here: async () => ({ ...(await thisMachine.here()), bootId: dir }),
    isRunning: async () => isRunning,
  };
}

const daemon = findDockerDaemon();
const isThere = typeof daemon !== "string";
afterAll(() => {
  if (isThere) daemon.remove();
});

interface Kind {
  readonly name: string;
  readonly make: (machine?: Machine) => Sandboxes;
  /** Sandboxes that are there. */
  readonly left: () => Promise<number>;
  /** Time for a command to begin: in a container later than here. */
  readonly timeoutMs: number;
}

/** Folders of sandboxes that are there. */
const foldersLeft = async (): Promise<number> =>
  (await readdir(dir)).filter((name) => name !== "log.txt").length;

const local: Kind = {
  name: "createLocalSandboxes()",
  make: (machine = machineWith(true)) => createLocalSandboxes({ dir, machine }),
  left: foldersLeft,
  timeoutMs: 1_500,
};
const inContainers: Kind = {
  name: "createDockerSandboxes()",
  make: (machine = machineWith(true)) =>
    createDockerSandboxes({ image: "python", program: standIn, machine }),
  left: foldersLeft,
  timeoutMs: 4_000,
};
const byDaemon: Kind = {
  name: "createDockerSandboxes() of a daemon",
  make: (machine = machineWith(true)) =>
    createDockerSandboxes({ image: isThere ? daemon.image : "", machine }),
  left: async () => (isThere ? daemon.count() : 0),
  timeoutMs: 4_000,
};

/** Lists the processes of a sandbox, also if they have pids of their own. */
async function untilGone(box: Sandbox, pid: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const { exitCode, stdout } = await box.run(["cat", `/proc/${pid}/stat`], { signal });
      expect(exitCode !== 0 || stdout.includes(") Z ")).toBe(true);
    },
    { timeout: 20_000 },
  );
}

const kinds = [local, inContainers, ...(isThere ? [byDaemon] : [])];

describe.each(kinds)("$name", ({ make, left, timeoutMs, name }) => {
  test("runs commands, whose failures are results, and removes everything at its end", async () => {
    const box = await make().open({ signal });
    const run = async (script: string, options: object = {}) =>
      await box.run(["sh", "-c", script], { signal, ...options });
    const nothing = { end: "exited", exitCode: 0, stdout: "", stderr: "", omittedBytes: 0 };
    expect(await run("echo out; echo err >&2; exit 3")).toEqual({
      ...nothing,
      exitCode: 3,
      stdout: "out\n",
      stderr: "err\n",
    });
    expect(await run("cat; echo $X", { stdin: "in ", env: { X: "y z" } })).toEqual({
      ...nothing,
      stdout: "in y z\n",
    });
    // The command does not read its input.
    expect(await run("exit 0", { stdin: "x".repeat(1_000_000) })).toEqual(nothing);
    await writeSandboxFile(box, { file: "a/b.txt", text: "ü\n", signal });
    expect(await readSandboxFile(box, { file: "a/b.txt", signal })).toBe("ü\n");
    expect(await readSandboxFile(box, { file: "-none", signal })).toBeUndefined();
    await box[Symbol.asyncDispose]();
    expect(await left()).toBe(0);
    // Once more does no harm.
    await box[Symbol.asyncDispose]();
  });

  test("reads a complete file or none of it", async () => {
    await using box = await make().open({ signal });
    const text = "0123456789abcdef".repeat(8_192);
    await writeSandboxFile(box, { file: "file", text, signal });
    expect(await readSandboxFile(box, { file: "file", signal })).toBe(text);
    const tooShort = { file: "file", signal, maxBytes: text.length - 1 };
    expect(await readSandboxFile(box, tooShort)).toBeUndefined();
  });

  test("starts a command in a folder that is seen from the sandbox's own", async () => {
    await using box = await make().open({ signal });
    await writeSandboxFile(box, { file: "a b/c/file", text: "here", signal });
    const inFolder = { signal, cwd: "a b/c" };
    expect((await box.run(["cat", "file"], inFolder)).stdout).toBe("here");
    const { stdout } = await box.run(["sh", "-c", "pwd"], inFolder);
    expect((await box.run(["cat", "file"], { signal, cwd: stdout.trim() })).stdout).toBe("here");
    const { end, exitCode, stderr } = await box.run(["cat", "file"], { signal, cwd: "none" });
    expect({ end, isFailed: exitCode !== 0 }).toEqual({ end: "exited", isFailed: true });
    expect(stderr).toContain("none");
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

  test("cuts an output before a key, and not within it", async () => {
    await using box = await make().open({ signal });
    const env = { API_KEY: "output-canary-0123456789" };
    const { stdout, omittedBytes } = await box.run(["sh", "-c", 'echo "ü $API_KEY and more"'], {
      signal,
      env,
      maxOutputBytes: 20,
    });
    expect({ stdout, omittedBytes }).toEqual({ stdout: "ü ", omittedBytes: 34 });
  });

  test("answers a command that no system can start, and continues", async () => {
    await using box = await make().open({ signal });
    const nothing = { end: "exited", stdout: "", omittedBytes: 0 };
    expect(await box.run(["sh", "-c", "echo a\0b"], { signal })).toEqual({
      ...nothing,
      exitCode: 126,
      stderr:
        "cannot run the command: argument 2 has a NUL character at position 6, " +
        "which only standard input and files can hold",
    });
    const after = await box.run(["cat"], { signal, stdin: "a\0b" });
    expect(after).toEqual({ ...nothing, exitCode: 0, stdout: "a\0b", stderr: "" });
  });

  test("runs a script of any usual length, and answers arguments that are too long", async () => {
    await using box = await make().open({ signal });
    const text = `${"ü".repeat(100_000)}\n`;
    await box.run(["sh", "-c", `cat > file <<'END'\n${text}END`], { signal });
    expect(await readSandboxFile(box, { file: "file", signal })).toBe(text);
    const { exitCode, stderr } = await box.run(["cat", text], { signal, cwd: "." });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 126,
      stderr:
        "cannot run the command: its arguments and variables are too long, " +
        "expected large contents in its standard input or in a file",
    });
  });

  test("says of an output that it is not UTF-8, and reads no such file", async () => {
    await using box = await make().open({ signal });
    const script = "printf '\\377a' > file; cat file";
    const result = await box.run(["sh", "-c", script], { signal });
    expect(result).toMatchObject({ stdout: "\ufffda", notUtf8: true, exitCode: 0 });
    expect(await readSandboxFile(box, { file: "file", signal })).toBeUndefined();
    // The limit cuts within a character.
    const options = { signal, stdin: "üü", maxOutputBytes: 3 };
    expect(await box.run(["cat"], options)).toEqual({
      end: "exited",
      exitCode: 0,
      stdout: "ü",
      stderr: "",
      omittedBytes: 2,
    });
  });

  test("refuses to write a file to an impossible place", async () => {
    await using box = await make().open({ signal });
    const write = async (file: string, text: string): Promise<unknown> =>
      await writeSandboxFile(box, { file, text, signal }).catch((thrown: unknown) => thrown);
    await box.run(["mkdir", "folder"], { signal });
    const error = await write("folder", "");
    expect(isRefusal(error)).toBe(true);
    expect((error as Error).message).toMatch(/^Cannot write "folder": .*[Ii]s a directory/);
    expect(await write("a\0", "")).toMatchObject({
      name: "ToolRefusal",
      message:
        'Cannot write "a\\u0000": cannot run the command: argument 4 has a NUL character at position 1, ' +
        "which only standard input and files can hold",
    });
    expect(await write("file", "\ud800")).toMatchObject({ name: "ToolRefusal" });
    expect(await readSandboxFile(box, { file: "a\0", signal })).toBeUndefined();
  });

  test("kills a command at its deadline, with all its child processes", async () => {
    await using box = await make().open({ signal });
    const script = "sleep 1000 & echo $!; wait";
    const { end, exitCode, stdout } = await box.run(["sh", "-c", script], {
      signal,
      timeoutMs,
    });
    expect({ end, exitCode }).toEqual({ end: "out-of-time", exitCode: 137 });
    await untilGone(box, Number(stdout));
    const after = await box.run(["echo", "still there"], { signal });
    expect(after.stdout).toBe("still there\n");
  });

  test("aborts a cancelled command", async () => {
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
    await untilGone(box, pid);
  });

  test("removes at the next start the remains of a dead process", async () => {
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
    // A container's processes die with it; on this machine they are found by their variable.
    if (name === local.name) await untilGone(box, Number(stdout));
    else if (name === inContainers.name) process.kill(Number(stdout), "SIGKILL");
    expect(await later.sweep()).toBe(1);
    expect(await left()).toBe(0);
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
          // A long limit: real processes run on a machine that may be busy. Other tests cover time
          // limits.
          timeoutMs: 600_000,
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
    // A command that no system can start is the model's mistake, and the episode continues.
    const mistaken = await play("echo a\0b", "printf hello > answer");
    expect(mistaken.steps[0]?.observation).toBe('{"stdout":"","exitCode":126}');
    expect(mistaken.score.reward).toBe(1);
    expect(await left()).toBe(0);
  });
});

describe("createLocalSandboxes()", () => {
  test("keeps a command within its memory and without our variables", async () => {
    process.env["TURNWRIGHT_TEST_SECRET"] = "no";
    await using box = await createLocalSandboxes({ dir, memoryMiB: 64 }).open({ signal });
    const script = "echo [$TURNWRIGHT_TEST_SECRET]; ulimit -v";
    expect((await box.run(["sh", "-c", script], { signal })).stdout).toBe("[]\n65536\n");
    delete process.env["TURNWRIGHT_TEST_SECRET"];
  });

  test("answers like a shell for an unknown program, and reports a missing folder", async () => {
    await using box = await createLocalSandboxes({ dir }).open({ signal });
    expect(await box.run(["no-such-program"], { signal })).toMatchObject({ exitCode: 127 });
    const file = path.join(dir, "file");
    await writeFile(file, "");
    const error = await createLocalSandboxes({ dir: file })
      .open({ signal })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RolloutError);
    expect((error as Error).message).toContain(`Cannot open a sandbox in ${file}: `);
  });

  test("keeps each sandbox in a folder of its own that only its user can enter", async () => {
    const before = process.umask(0);
    try {
      for (const place of [dir, path.join(dir, "new", "place")]) {
        await using box = await createLocalSandboxes({ dir: place }).open({ signal });
        const { mode, uid } = await stat(path.join(place, box.id));
        expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o700, uid: process.getuid!() });
      }
      expect((await stat(path.join(dir, "new"))).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  test("has no folder in the temporary one that another user could have made before", async () => {
    const usual = process.env["TMPDIR"];
    process.env["TMPDIR"] = dir;
    try {
      // The one name that earlier sandboxes shared.
      await writeFile(path.join(dir, "turnwright-sandboxes"), "");
      await using one = await createLocalSandboxes().open({ signal });
      await using other = await createLocalSandboxes().open({ signal });
      const names = (await readdir(dir)).filter((name) => name !== "turnwright-sandboxes");
      expect(names.toSorted()).toEqual([one.id, other.id].toSorted());
      expect(names.every((name) => /^turnwright-sandbox-\w{6}$/.test(name))).toBe(true);
    } finally {
      if (usual === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = usual;
    }
  });

  test("removes no folder through a link", async () => {
    const elsewhere = path.join(dir, "elsewhere");
    await mkdir(elsewhere);
    await writeFile(
      path.join(elsewhere, "owner.json"),
      JSON.stringify(await machineWith(false).here()),
    );
    await symlink(elsewhere, path.join(dir, "turnwright-sandbox-aaaaaa"));
    expect(await createLocalSandboxes({ dir, machine: machineWith(false) }).sweep()).toBe(0);
    expect(await readdir(elsewhere)).toEqual(["owner.json"]);
  });

  test("ignores containers of other owners", async () => {
    await mkdir(path.join(dir, "holiday-pictures"));
    expect(await createLocalSandboxes({ dir, machine: machineWith(false) }).sweep()).toBe(0);
    expect(await readdir(dir)).toEqual(["holiday-pictures"]);
  });
});

describe("createDockerSandboxes()", () => {
  const docker = (options: object = {}) =>
    createDockerSandboxes({ image: "python", program: standIn, ...options });

  test.each([
    [{ memoryMiB: 0 }, "memoryMiB is 0"],
    [{ maxProcesses: -1 }, "maxProcesses is -1"],
    [{ cpus: NaN }, "cpus is NaN"],
    [{ lifetimeMs: Infinity }, "lifetimeMs is Infinity"],
  ])("refuses %j, which Docker would take for no limit", (options, problem) => {
    expect(() => createDockerSandboxes({ image: "python", ...options })).toThrow(
      new UsageError(`Cannot make Docker sandboxes: ${problem}, expected a number above 0`),
    );
  });

  test("limits a container's resources", async () => {
    await using _box = await docker({ memoryMiB: 64, cpus: 2, cwd: "/work" }).open({ signal });
    const lines = (await readFile(path.join(dir, "log.txt"), "utf8")).trim().split("\n");
    const args = JSON.parse(lines.at(-1)!) as string[];
    expect(args[4]).toMatch(/^turnwright-[\w-]{36}$/);
    expect(JSON.parse(args[6]!.replace("turnwright.owner=", ""))).toEqual(await thisMachine.here());
    expect(args.toSpliced(6, 1).toSpliced(4, 1).toSpliced(-3, 1)).toEqual([
      "run",
      "--detach",
      "--rm",
      "--name",
      "--label",
      "--memory",
      "64m",
      "--memory-swap",
      "64m",
      "--cpus",
      "2",
      "--pids-limit",
      "256",
      "--cap-drop",
      "ALL",
      "--security-opt",
      "no-new-privileges",
      "--network",
      "none",
      "--workdir",
      "/work",
      "--entrypoint",
      "sh",
      "python",
      "-c",
      "sh",
      "3600",
    ]);
  });

  test("distinguishes a container that disappeared during a command from a killed command", async () => {
    const box = await docker().open({ signal });
    const killed = await box.run(["sh", "-c", "kill -9 $$"], { signal });
    expect(killed).toMatchObject({ end: "exited", exitCode: 137 });
    await writeFile(path.join(dir, box.id, "paused"), "");
    const paused = box.run(["true"], { signal });
    await expect(paused).rejects.toMatchObject({ code: "environment/unreachable" });
    await rm(path.join(dir, box.id, "paused"));
    const script = 'rm -r "$1"; kill -9 $$';
    const run = box.run(["sh", "-c", script, "sh", path.join(dir, box.id)], { signal });
    await expect(run).rejects.toMatchObject({ code: "environment/unreachable", retryable: true });
  });

  test("hands a command its secrets in variables, not in arguments that everybody can read", async () => {
    await using box = await docker().open({ signal });
    const env = { API_KEY: "canary-of-a-box", PLAIN: "a b" };
    const { stdout } = await box.run(["sh", "-c", "echo $API_KEY $PLAIN"], { signal, env });
    expect(stdout).toBe("canary-of-a-box a b\n");
    const log = await readFile(path.join(dir, "log.txt"), "utf8");
    expect(log).toContain('"--env","API_KEY","--env","PLAIN"');
    const addresses = {
      DATABASE_URL: "postgres://me:canary-of-a-box@db/shop",
      PAGE: "http://host/page",
      DOCKER_HOST: "ssh://me@elsewhere",
    };
    const said = await box.run(["sh", "-c", "echo $DATABASE_URL"], { signal, env: addresses });
    expect(said.stdout).toBe("postgres://me:canary-of-a-box@db/shop\n");
    const both = await readFile(path.join(dir, "log.txt"), "utf8");
    expect(both).toContain(
      '"--env","DATABASE_URL","--env","PAGE","--env","DOCKER_HOST=ssh://me@elsewhere"',
    );
    expect(both).not.toContain("canary-of-a-box");
  });

  test("shows no value of a variable to other users, except of those that Docker's program goes by", async () => {
    await using box = await docker().open({ signal });
    const env = { DB_PW: "canary-pw", CLOUD_CRED: "canary-cred", UNSEAL: "canary a\nb", EMPTY: "" };
    const own = { DOCKER_CONTEXT: "elsewhere", NO_PROXY: "db", LANG: "C", GOAL: "canary-goal" };
    const names = Object.keys({ ...env, ...own });
    const script = names.map((name) => `echo "$${name}"`).join("; ");
    const { stdout } = await box.run(["sh", "-c", script], { signal, env: { ...env, ...own } });
    expect(stdout).toBe(`${Object.values({ ...env, ...own }).join("\n")}\n`);
    const log = await readFile(path.join(dir, "log.txt"), "utf8");
    expect(log).not.toContain("canary");
    expect(log).toContain(
      '"--env","DB_PW","--env","CLOUD_CRED","--env","UNSEAL","--env","EMPTY",' +
        '"--env","DOCKER_CONTEXT=elsewhere","--env","NO_PROXY=db","--env","LANG=C","--env","GOAL"',
    );
  });

  test("repeats Docker's message if a container cannot be started, or is gone", async () => {
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
    // A command that prints the same message is not an outage.
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

describe.skipIf(!isThere)("createDockerSandboxes() of a daemon", () => {
  const docker = (options: object = {}) =>
    createDockerSandboxes({
      image: isThere ? daemon.image : "",
      machine: machineWith(true),
      ...options,
    });
  const shell = async (box: Sandbox, script: string, timeoutMs = 60_000) =>
    await box.run(["sh", "-c", script], { signal, timeoutMs });

  test("keeps a container within its limits, and apart from the network", async () => {
    await using box = await docker({ memoryMiB: 32, maxProcesses: 24 }).open({ signal });
    expect((await shell(box, "ls /sys/class/net")).stdout).toBe("lo\n");
    const status = await shell(box, "grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status");
    expect(status.stdout.replaceAll("\t", "")).toBe(
      "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\n",
    );
    expect((await shell(box, "tail /dev/zero")).exitCode).toBe(137);
    // Ended processes do not count any more, regardless of their parent.
    const orphans = "i=0; while [ $i -lt 100 ]; do (true &); i=$((i+1)); done; echo done";
    expect((await shell(box, orphans)).stdout).toBe("done\n");
    const bomb = "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done; echo all";
    const { stdout, stderr } = await shell(box, bomb);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/fork/i);
  });

  test("continues with a container that had too many processes, or one that killed all it could", async () => {
    await using box = await docker({ maxProcesses: 32 }).open({ signal });
    const bomb = "while :; do sleep 1000 & sleep 1000 & wait; done";
    const flood = `f() { ${bomb}; }; f & f & i=0; while :; do sleep 1000 || sleep 0.1; done`;
    expect((await shell(box, flood, 3_000)).end).toBe("out-of-time");
    expect((await shell(box, "echo after")).stdout).toBe("after\n");
    await shell(box, "kill -9 -1; kill -9 1");
    expect((await shell(box, "echo again")).stdout).toBe("again\n");
  });

  test("ends a container when its lifetime is over", async () => {
    await using box = await docker({ lifetimeMs: 1_000 }).open({ signal });
    await vi.waitFor(() => expect(isThere && daemon.count()).toBe(0), { timeout: 60_000 });
    await expect(shell(box, "true")).rejects.toMatchObject({ code: "environment/unreachable" });
  });

  test("leaves no trace of a container that was cancelled while it was opened", async () => {
    const boxes = docker();
    await boxes.sweep();
    await Promise.all(
      [20, 60, 120, 250, 500].map(async (ms) => {
        const stop = AbortSignal.timeout(ms);
        const box = await boxes.open({ signal: stop }).catch(() => undefined);
        await box?.[Symbol.asyncDispose]();
      }),
    );
    await vi.waitFor(() => expect(isThere && daemon.count()).toBe(0), { timeout: 60_000 });
  });
});
