import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSglangTestServer, createEchoPolicy } from "../../src/testing/index.ts";
import { callCli } from "../support/call-cli.ts";
import { cliFile } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-serve-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** Starts the command, and waits for its line. */
async function serve(args: readonly string[]) {
  const child = spawn(process.execPath, [cliFile, "serve-test", "--port", "0", ...args], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  return {
    url,
    async stop(): Promise<number | null> {
      const ended = once(child, "close") as Promise<[number | null]>;
      child.kill("SIGINT");
      return (await ended)[0];
    },
  };
}

describe("turnwright serve-test", () => {
  test.each(["sglang", "vllm", "llama-cpp"])("plays %s for a rollout", async (protocol) => {
    const turns = JSON.stringify({ turns: ["Good day!"], modelDir: smallModelFolder });
    const policy = ["--policy", "text", "--policy-options", turns];
    const server = await serve(["--protocol", protocol, ...policy]);
    const out = path.join(scratch, protocol);
    const { status, stderr } = await callCli([
      "rollout",
      "--env",
      "storefront",
      "--user",
      "scripted",
      "--tasks",
      "0",
      "--quiet",
      "--engine",
      protocol,
      "--url",
      server.url,
      "--model",
      smallModelFolder,
      "--out",
      out,
    ]);
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect((await callCli(["verify", out])).status).toBe(0);
    expect((await callCli(["show", out, "0"])).stdout).toContain("Good day!");
    expect(await server.stop()).toBe(0);
  });

  test.each([
    [["--port", "70000"], /'70000' is invalid\. expected a port, 0 to 65535 \(see --help\)$/],
    [["--protocol", "tgi"], /Allowed choices are sglang, vllm, llama-cpp\. \(see --help\)$/],
    [["--options", "{"], /^turnwright: Cannot read --options: expected JSON \(.+\)$/],
    [["--options", "[]"], /^turnwright: Cannot read --options: expected one JSON object$/],
    [
      ["--policy", "text"],
      /^turnwright: Cannot make the policy "text": expected --policy-options /,
    ],
    [
      ["--policy", "./no-such.js"],
      /^turnwright: Cannot use \.\/no-such\.js as policy: expected seeded, echo, scripted, text, or a module that is there$/,
    ],
  ])("refuses %j in one line", async (args, line) => {
    const { status, stdout, stderr } = await callCli(["serve-test", ...args]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr.trimEnd()).toMatch(line);
  });

  test("says that a port is taken", async () => {
    await using taken = await startSglangTestServer({ policy: createEchoPolicy() });
    const { port } = new URL(taken.url);
    expect(await callCli(["serve-test", "--port", port])).toEqual({
      status: 2,
      stdout: "",
      stderr: `turnwright: Cannot listen at port ${port}: it is taken, expected a free one such as --port 0\n`,
    });
  });
});
