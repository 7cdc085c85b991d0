import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyRun } from "../../src/verify/verify-run.ts";
import { modelDir } from "./storefront-session.fixture.ts";

const program = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));

let dir: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-gateway-"));
});

afterEach(async () => {
  child?.kill("SIGKILL");
  await rm(dir, { recursive: true, force: true });
});

/** Starts the gateway as people do, and waits until it listens. */
async function start(): Promise<string> {
  const given = ["--engine", "reference", "--model", modelDir, "--threads", "1"];
  child = spawn(
    process.execPath,
    [
      program,
      "gateway",
      ...given,
      "--out",
      dir,
      "--port",
      "0",
      "--json",
      "--open-sessions",
      "--admin-token-env",
      "BOSS",
    ],
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, BOSS: "the-admin-token" } },
  );
  for await (const line of createInterface({ input: child.stdout! })) {
    const { type, url } = JSON.parse(line) as { type: string; url: string };
    if (type === "listening") return url;
  }
  throw new Error("the gateway ended before it listened");
}

const admin = { authorization: "Bearer the-admin-token" };

async function ask(url: string, messages: readonly object[], stream = false): Promise<Response> {
  return await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer my-own-key" },
    body: JSON.stringify({ model: "policy", messages, stream, max_tokens: 64 }),
  });
}

async function say(response: Response): Promise<{ readonly content: string }> {
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]!.message;
}

test("a gateway that is killed in mid-stream resumes, and loses no finished turn", async () => {
  const hi = { role: "user", content: "Hello, I would like to return something." };
  let url = await start();
  const first = await say(await ask(url, [hi]));
  const more = [hi, first, { role: "user", content: "It is order 1." }];
  const streaming = ask(url, more, true).catch(() => undefined);
  child!.kill("SIGKILL");
  await once(child!, "close");
  await (await streaming)?.text().catch(() => "");
  url = await start();
  const second = await say(await ask(url, more));
  expect(second.content).not.toBe("");
  const journal = await readFile(path.join(dir, "gateway.jsonl"), "utf8");
  expect(journal).not.toContain("my-own-key");
  const { identity } = JSON.parse(journal.split("\n")[0]!) as { identity: { sessionId: string } };
  const { sessionId } = identity;
  const stats = (await (await fetch(`${url}/stats`, { headers: admin })).json()) as {
    roots: object;
  };
  expect(stats.roots).toEqual({ first: 1 });
  const ended = await fetch(`${url}/sessions/${sessionId}/finish`, {
    method: "POST",
    headers: admin,
    body: '{"reward": 1}',
  });
  expect(ended.status).toBe(200);
  child!.kill("SIGINT");
  const [status] = (await once(child!, "close")) as [number];
  expect(status).toBe(0);
  const verified = await verifyRun(dir);
  expect(verified).toMatchObject({ episodes: 1, isFinished: true, violations: [] });
});
