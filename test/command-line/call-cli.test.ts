import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { callCli } from "../support/call-cli.ts";
import { runCli } from "../support/run-cli.ts";

test.each<[readonly string[], number, string]>([
  [["--version"], 0, ""],
  [["rollout", "--bogus"], 2, ""],
  [["rollout", "--env", "nope"], 2, ""],
  [["env", "list", "storefront"], 0, ""],
  [["verify", "/nowhere.jsonl"], 2, ""],
  [["parse", "--parser", "qwen25"], 1, '{"text":"a","tools":[]}\n{broken\n'],
])("a process prints the same as the call: %j", async (args, status, input) => {
  const shown = await runCli(args, { input });
  expect(shown.status).toBe(status);
  expect(await callCli(args, { input })).toEqual(shown);
});

test("a call restores the process, also after an error", async () => {
  const dir = await realpath(await mkdtemp(path.join(tmpdir(), "turnwright-call-")));
  onTestFinished(async () => await rm(dir, { recursive: true }));
  const state = () => ({
    argv: process.argv,
    cwd: process.cwd(),
    exitCode: process.exitCode,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    variable: process.env["TURNWRIGHT_CALLED"],
    listeners: process.listenerCount("SIGINT"),
  });
  const before = state();
  const around = { cwd: dir, env: { TURNWRIGHT_CALLED: "1" } };
  const said = await callCli(["show", "nowhere"], around);
  expect(said.stderr).toContain("Cannot read nowhere/run.json");
  expect(state()).toEqual(before);
  // commander does not accept arguments that no process can be started with.
  await expect(callCli([undefined as never], around)).rejects.toThrow(TypeError);
  expect(state()).toEqual(before);
});
