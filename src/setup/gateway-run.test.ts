import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunManifest } from "../run/run-folder.ts";
import { echoPolicy } from "../testing/echo-policy.ts";
import { startSglangTestServer } from "../testing/sglang-test-server.ts";
import { readGatewayConfig } from "./gateway-config.ts";
import { createGatewayRun } from "./gateway-run.ts";
import type { GivenSettings } from "./setting.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-gateway-run-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

test("goes on in a folder of an earlier build, and notes what that one did not", async () => {
  await using server = await startSglangTestServer({ policy: echoPolicy({ tokenCount: 2 }) });
  const out = path.join(dir, "run");
  const start = async (more: GivenSettings = {}): Promise<readonly string[]> => {
    const config = readGatewayConfig({ engine: "sglang", url: [server.url], model, out, ...more });
    await using run = await createGatewayRun(config, { env: {} });
    const finished = run.folder.finished.map(({ rolloutId }) => rolloutId);
    if (finished.length > 0) return finished;
    const { sessionId } = await run.gateway.openSession({});
    const session = run.gateway.store.byId(sessionId);
    if (session !== undefined) await run.gateway.finish(session, { reward: { reward: 1 } });
    return run.folder.finished.map(({ rolloutId }) => rolloutId);
  };
  const stored = async (): Promise<RunManifest> =>
    JSON.parse(await readFile(path.join(out, "run.json"), "utf8")) as RunManifest;
  await start();
  const whole = await stored();
  expect(whole.identity).toMatchObject({ "max-context": "131072", scorer: "none" });
  const { scorer: _scorer, templateVariables: _variables, ...identity } = whole.identity ?? {};
  await writeFile(path.join(out, "run.json"), JSON.stringify({ ...whole, identity }));
  expect(await start()).toHaveLength(1);
  expect(await stored()).toEqual(whole);
  const scorer = path.join(dir, "score.mjs");
  await writeFile(scorer, "export const score = () => 1;\n");
  await expect(start({ scorer })).rejects.toThrow('scorer was "none" and is "');
});
