import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type * as foreign from "../examples/foreign-world.ts";
import type * as remote from "../examples/remote-sandboxes.ts";
import type * as boxed from "../examples/scripts-in-a-box.ts";
import { rollout, type DefinedEnvironment, type RolloutEpisode } from "../src/index.ts";
import { createLocalSandboxes, serveOpenEnv } from "../src/worlds/index.ts";
import {
  createCharacterRenderer,
  startSglangTestServer,
  createTextPolicy,
} from "../src/testing/index.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { callCli } from "./support/call-cli.ts";
import { cliFile } from "./support/run-cli.ts";
import { startSandboxService } from "./support/sandbox-service.ts";
import { smallModelFolder } from "./support/small-model.ts";

/** The module that an example was compiled to. */
function compiled(name: string): string {
  return fileURLToPath(new URL(`../dist/examples/${name}.js`, import.meta.url));
}

function call(name: string, given: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;
}

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-worlds-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

describe("docs/worlds.md", () => {
  test("an environment with an MCP server's tools is rolled out, and replayed without the server", async () => {
    const script = fileURLToPath(
      new URL("../src/worlds/mcp/mcp-test-server.fixture.mjs", import.meta.url),
    );
    const toolsFile = path.join(scratch, "tools.json");
    const world = path.join(scratch, "sums.mjs");
    await writeFile(
      world,
      `import { createSums } from ${JSON.stringify(compiled("sums"))};\n` +
        `export default createSums({ command: process.execPath, args: [process.env.MCP_SERVER], ` +
        `toolsFile: ${JSON.stringify(toolsFile)} });\n`,
    );
    const turns = [call("add", { a: 2, b: 3 }), "It is 5."];
    const policy = await createTextPolicy(() => turns, { modelDir: smallModelFolder });
    await using server = await startSglangTestServer({ policy });
    const out = path.join(scratch, "run");
    const env = { MCP_SERVER: script };
    const played = await callCli(
      [
        "rollout",
        "--split",
        "test",
        "--env",
        world,
        "--user",
        "scripted",
        "--quiet",
        "--out",
        out,
        "--url",
        server.url,
        "--model",
        smallModelFolder,
      ],
      { env },
    );
    expect(played.stderr).toBe("");
    expect(played.status).toBe(0);
    expect((await callCli(["show", out, "0"])).stdout).toContain("reward 1");
    expect((await callCli(["verify", out])).status).toBe(0);
    const replayed = await callCli(["replay", out], { env: { MCP_SERVER: "/no/such/server.mjs" } });
    expect(replayed.stderr).toBe("");
    expect(replayed.status).toBe(0);
  });

  test("commands run in the episode's own sandbox", async () => {
    const { createFileTasks } = (await import(compiled("scripts-in-a-box"))) as typeof boxed;
    const environment = createFileTasks(createLocalSandboxes({ dir: path.join(scratch, "boxes") }));
    const rewards = await rewardsOf(environment, [
      call("shell", { command: "seq 3 > numbers.txt" }),
      "It is done.",
    ]);
    expect(rewards).toEqual([1, 0]);
  });

  test("commands run in the sandboxes of an HTTP service, and the sandboxes are removed", async () => {
    const { createFileTasks } = (await import(compiled("scripts-in-a-box"))) as typeof boxed;
    const { remoteSandboxes } = (await import(compiled("remote-sandboxes"))) as typeof remote;
    const dir = path.join(scratch, "remote");
    await using service = await startSandboxService(dir);
    const boxes = remoteSandboxes({ url: service.url, token: "secret", image: "plain" });
    const turns = [call("shell", { command: "seq 3 > numbers.txt" }), "It is done."];
    expect(await rewardsOf(createFileTasks(boxes), turns)).toEqual([1, 0]);
    expect(await readdir(dir)).toEqual([]);
    const asked = { image: "plain", lifetimeMs: 3_600_000 };
    expect(service.opened).toEqual([asked, asked]);

    const { signal } = new AbortController();
    const box = await boxes.open({ signal });
    const print = async (options: object) =>
      await box.run(["sh", "-c", "cat; echo $X >&2; exit 3"], { signal, ...options });
    expect(await print({ stdin: "ab", env: { X: "y" }, maxOutputBytes: 1 })).toEqual({
      end: "exited",
      exitCode: 3,
      stdout: "a",
      stderr: "y",
      omittedBytes: 2,
    });
    expect(await box.run(["sleep", "1000"], { signal, timeoutMs: 100 })).toMatchObject({
      end: "out-of-time",
    });
    // Aborted here, it is killed there.
    const stop = new AbortController();
    const running = box.run(["sleep", "1000"], { signal: stop.signal });
    running.catch(() => undefined);
    await vi.waitFor(() => expect(service.runningCount()).toBe(1), { timeout: 600_000 });
    stop.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    await vi.waitFor(() => expect(service.runningCount()).toBe(0), { timeout: 600_000 });
    await box[Symbol.asyncDispose]();

    // A fault of the service is an outage, and not a mistake of the model.
    const gone = { code: "environment/unreachable", retryable: true };
    await expect(box.run(["true"], { signal })).rejects.toMatchObject({
      ...gone,
      message: `POST ${box.id}/run is answered 404: no such sandbox`,
    });
    const stranger = remoteSandboxes({ url: service.url, token: "guess", image: "plain" });
    await expect(stranger.open({ signal })).rejects.toMatchObject({
      ...gone,
      message: "POST sandboxes is answered 401: who are you?",
    });
    await service[Symbol.asyncDispose]();
    await expect(boxes.open({ signal })).rejects.toMatchObject({
      ...gone,
      message: `Cannot reach ${service.url}`,
    });
  });

  test("the world of an OpenEnv server is rolled out, here of one that `env serve` began", async () => {
    const served = spawn(
      process.execPath,
      [cliFile, "env", "serve", compiled("library-desk"), "--port", "0"],
      { stdio: ["ignore", "pipe", "ignore"] },
    );
    const [line] = (await once(served.stdout.setEncoding("utf8"), "data")) as [string];
    const { url } = JSON.parse(line) as { url: string };
    const { openForeignWorld } = (await import(compiled("foreign-world"))) as typeof foreign;
    const environment = await openForeignWorld(url);
    const rewards = await rewardsOf(environment, [
      call("return_book", { book: "Emma" }),
      call("lend_book", { book: "Dune", member: "Ann" }),
      "Here it is.",
    ]);
    expect(rewards).toEqual([1, 0]);
    const ended = once(served, "close") as Promise<[number | null]>;
    served.kill("SIGINT");
    expect((await ended)[0]).toBe(0);
  });

  test("a served storefront plays the same as here", async () => {
    const { createStorefront, createStorefrontUser } =
      await import("../environments/storefront/index.ts");
    await using server = await serveOpenEnv(createStorefront(), {
      port: 0,
      user: createStorefrontUser(),
    });
    const reply = await fetch(`${server.url}/storefront/num_tasks`, {
      method: "POST",
      body: JSON.stringify({ split: "test" }),
    });
    expect(await reply.json()).toEqual({ num_tasks: createStorefront().splits["test"] });
  });
});

/** The rewards of the first test tasks, by a policy with the same turns in each. */
async function rewardsOf(
  environment: Pick<DefinedEnvironment, "name" | "open" | "task" | "splits" | "tools"> &
    Parameters<typeof rollout>[0]["environment"],
  turns: readonly string[],
) {
  const renderer = createCharacterRenderer();
  const policy = await createTextPolicy(() => turns, { renderer });
  await using server = await startSglangTestServer({ policy });
  const rewards: (number | undefined)[] = [];
  for await (const { episodes } of rollout({ environment, renderer, url: server.url })) {
    const [{ samples, ...episode }] = episodes as [RolloutEpisode];
    rewards[episode.taskIndex] = episode.reward;
    expect(samples.flatMap((sample) => verifySample(sample))).toEqual([]);
  }
  return rewards;
}
