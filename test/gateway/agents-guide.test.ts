import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { serveGateway } from "../../src/gateway/server/serve.ts";
import { readGatewayConfig } from "../../src/composition/config/gateway-config.ts";
import { createGatewayRun } from "../../src/composition/gateway-run.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";
import { modelDir } from "./storefront-session.fixture.ts";

/** The agent that docs/agents.md shows, as it was compiled. */
const agent = fileURLToPath(new URL("../../dist/examples/my-agent.js", import.meta.url));

test("docs/agents.md: an agent of the AI SDK, written as the page shows, has valid rows", async () => {
  const out = await mkdtemp(path.join(tmpdir(), "turnwright-guide-"));
  onTestFinished(async () => await rm(out, { recursive: true, force: true }));
  const config = readGatewayConfig({ engine: "reference", model: modelDir, out, threads: 1 });
  let output: string;
  {
    await using run = await createGatewayRun(config, { env: {} });
    const place = { host: "127.0.0.1", port: 0, opensSessions: false };
    await using served = await serveGateway(run.gateway, place);
    const post = async (where: string, body: object, key?: string) => {
      const headers = { authorization: `Bearer ${key}` };
      const init = { method: "POST", body: JSON.stringify(body), ...(key && { headers }) };
      return (await (await fetch(served.url + where, init)).json()) as Record<string, string>;
    };
    const { token, ownerToken, sessionId } = await post("/sessions", { taskId: "order-4775" });
    const { stdout } = await promisify(execFile)(process.execPath, [agent], {
      env: { ...process.env, OPENAI_BASE_URL: `${served.url}/v1`, OPENAI_API_KEY: token },
    });
    output = stdout;
    expect(await post(`/sessions/${sessionId}/finish`, { reward: 1 }, ownerToken)).toMatchObject({
      outcome: "completed",
      reward: 1,
      rows: 1,
    });
    await run.end();
  }
  expect(output.trim()).not.toBe("");
  const { status, stdout } = await callCli(["verify", out, "--rescore"]);
  expect(status).toBe(0);
  const [verified] = jsonLines(stdout);
  expect(verified).toMatchObject({ samples: 1, episodes: 1, violations: [] });
  expect(verified).toMatchObject({ rescore: { rowCount: 1, beyondToleranceCount: 0 } });
});
