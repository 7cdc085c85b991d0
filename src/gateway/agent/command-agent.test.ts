import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { createCommandAgent } from "./command-agent.ts";
import type { ForeignRun } from "./foreign-agent.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-command-agent-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** Returns the `TURNWRIGHT_TASK` of a command for a first user message, or `-` if it is absent. */
async function taskSeen(firstUserText: string): Promise<string> {
  const file = path.join(dir, "seen");
  const run = {
    task: { id: "e/test/0" },
    policyText: "p",
    firstUserText,
    baseUrl: "http://127.0.0.1:1",
    apiKey: "key",
    signal: new AbortController().signal,
  } as unknown as ForeignRun;
  await createCommandAgent(`printf %s "\${TURNWRIGHT_TASK--}" > '${file}'`).run(run);
  return await readFile(file, "utf8");
}

test("a command has its task in a variable, even with a NUL or half of a surrogate pair", async () => {
  expect(await taskSeen("a\0\ud800")).toBe(
    String.raw`{"id":"e/test/0","policyText":"p","firstUserText":"a\u0000\ud800"}`,
  );
});

test("a command starts without the variable if the task exceeds its limit", async () => {
  expect(await taskSeen("ü".repeat(70_000))).toBe("-");
});

test("the standard error of a failed command is quoted without a part of a key", async () => {
  hideEverywhere({ secrets: ["command-canary-0123456789"] });
  const run = {
    task: { id: "e/test/0" },
    policyText: "p",
    firstUserText: "f",
    baseUrl: "http://127.0.0.1:1",
    apiKey: "session-canary-0123456789",
    signal: new AbortController().signal,
  } as unknown as ForeignRun;
  const file = path.join(dir, "agent.mjs");
  for (const key of [run.apiKey, "command-canary-0123456789"]) {
    const text = JSON.stringify(key + "y".repeat(1990));
    await writeFile(file, `console.error(${text}); process.exitCode = 1;`);
    const failed = createCommandAgent(`node '${file}'`).run(run);
    const { message } = (await failed.catch((error: unknown) => error)) as Error;
    expect(message).toContain("ended with status 1: ");
    expect(message).not.toContain("6789");
  }
});

test("a command gets no variable that is named like a secret or has a password, and its failure names them", async () => {
  const secrets = {
    TURNWRIGHT_TEST_TOKEN: "canary-in-a-token",
    TURNWRIGHT_TEST_API_KEY: "canary-in-a-key",
    TURNWRIGHT_TEST_DATABASE: "postgres://reader:canary@host/db",
  };
  const plain = {
    TURNWRIGHT_TEST_MODE: "shown",
    TURNWRIGHT_TEST_AUTH_MODE: "required",
    TURNWRIGHT_TEST_PROXY: "http://proxy:8080",
  };
  Object.assign(process.env, secrets, plain);
  const file = path.join(dir, "variables");
  const run = {
    task: { id: "e/test/0" },
    policyText: "p",
    firstUserText: "f",
    baseUrl: "http://127.0.0.1:1",
    apiKey: "key",
    signal: new AbortController().signal,
  } as unknown as ForeignRun;
  const failed = createCommandAgent(`env > '${file}'; exit 3`).run(run);
  const { message } = (await failed.catch((error: unknown) => error)) as Error;
  for (const name of Object.keys({ ...secrets, ...plain })) delete process.env[name];
  const seen = (await readFile(file, "utf8")).split("\n");
  expect(seen.filter((line) => line.startsWith("TURNWRIGHT_TEST_")).toSorted()).toEqual(
    Object.entries(plain)
      .map(([name, value]) => `${name}=${value}`)
      .toSorted(),
  );
  expect(seen).toContain("OPENAI_API_KEY=key");
  const hint = /\(it is not given variables with secrets, here (.*)\)$/.exec(message)?.[1];
  expect(hint?.split(", ")).toEqual(expect.arrayContaining(Object.keys(secrets)));
  expect(hint).not.toMatch(/OPENAI_API_KEY|ANTHROPIC_AUTH_TOKEN/);
  expect(message).not.toContain("canary");
});

test.runIf(process.platform === "linux")(
  "processes that left the command's group end with it",
  async () => {
    const run = {
      task: { id: "e/test/0" },
      policyText: "p",
      firstUserText: "f",
      baseUrl: "http://127.0.0.1:1",
      apiKey: `key-${path.basename(dir)}`,
      signal: new AbortController().signal,
    } as unknown as ForeignRun;
    const file = path.join(dir, "pid");
    const child = `setsid sh -c 'echo $$ > "${file}.next"; mv "${file}.next" "${file}"; sleep 600' 2>&- &`;
    await createCommandAgent(`${child} until [ -e '${file}' ]; do sleep 0.01; done`).run(run);
    const pid = Number(await readFile(file, "utf8"));
    await expect.poll(() => isRunning(pid)).toBe(false);
  },
);

/** True if a process exists and has not ended. */
async function isRunning(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status !== "" && !/\) Z /.test(status);
}
