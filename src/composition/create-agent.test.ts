import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import { tauBenchBundle } from "../testing/shared-data.fixture.ts";
import type { Environment } from "../environment/environment.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { agentSettings, isForeignAgent, readAgentConfig } from "./config/agent-config.ts";
import { createAgent } from "./create-agent.ts";
import { loadEnvironment } from "./environment/environments.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { completeSettings, type GivenSettings } from "./config/setting.ts";

const foundBundle = tauBenchBundle();
const bundle = foundBundle ?? "";

async function build({ parser, data, ...given }: GivenSettings, environment: Environment) {
  const config = readAgentConfig(completeSettings(agentSettings, given), 0);
  const renderer = createCharacterRenderer();
  // The parser that the settings name comes by way of the renderer's card.
  const { parser: _own, ...others } = renderer.card;
  const card = { ...others, ...(typeof parser === "string" && { parser }) };
  const dataDir = typeof data === "string" ? data : undefined;
  const place = { renderer: { ...renderer, card }, environment, ...withoutUndefined({ dataDir }) };
  if (isForeignAgent(config)) throw new Error("the agents of this test are built in");
  return await createAgent(config, place);
}

async function systemMessage(flags: GivenSettings, environment: Environment): Promise<string> {
  const { policyText, tools } = environment;
  const agent = await build(flags, environment);
  const start = { policyText, tools, firstUserText: "Hi", seed: 17, taskIndex: 0 };
  return agent.open(start).messages[0]!.content;
}

describe("createAgent()", () => {
  test("builds the strategy that is named, tool-calling by default", async () => {
    const environment = createStorefront();
    expect(await build({ parser: "qwen25" }, environment)).toHaveProperty(
      "strategy",
      "tool-calling",
    );
    expect(await build({ agent: "act" }, environment)).toHaveProperty("strategy", "act");
    const content = await systemMessage({ agent: "react" }, environment);
    expect(content.startsWith(`${environment.policyText}\n\n# Tools\n\n[{"type": `)).toBe(true);
    expect(content).toContain("Thought:");
  });

  test.each([
    [{ agent: "act", "tool-use": "one" }, "Cannot use --tool-use one with --agent act"],
    [{ agent: "few-shot", parser: "qwen25" }, "Missing --few-shot-file: storefront brings no"],
    [
      { agent: "few-shot", parser: "qwen25", "few-shot-file": "absent" },
      "Cannot read the examples",
    ],
    [{ agent: "tool-calling" }, "Cannot tell the tool-call parser"],
  ])("refuses %j", async (flags, message) => {
    await expect(build(flags, createStorefront())).rejects.toThrow(message);
  });
});

describe.skipIf(foundBundle === null)("the agents of τ-bench's domains", () => {
  // SHA-256 of the examples that the original's agents build, with `random.seed(17)` before them.
  test.each([
    ["tau-retail", "act", "18f186175a6486a6abf86eafb3184dd539845f39e2df388047238797d1ea9d94"],
    ["tau-retail", "react", "00a3f58318aba490d0866da7f27cdf428d82c50347e6a9e615e90c1cb8eec805"],
    ["tau-retail", "few-shot", "35a0c3db2ad912f39eda4699bf4312f378044a3749f2d2d7bb7f7dafbf9497ae"],
    ["tau-airline", "act", "581c228d7b7d7029d73ecaf10497de32b64ca6f11f4a6e280880c3899a9147b4"],
    ["tau-airline", "react", "d7485e897582986b33c81f6bee5402adaac8b202f997873e53c90ff3ba87a518"],
    ["tau-airline", "few-shot", "b61ffe23bde96d4bad6ecf642e2acbfb57f68a5b68d4cc3b699367d1f1373586"],
  ])("in %s, %s begins as the original", async (name, agent, hash) => {
    const environment = await loadEnvironment({ name, dataDir: bundle });
    const content = await systemMessage({ agent, data: bundle, parser: "qwen25" }, environment);
    expect(createHash("sha256").update(content).digest("hex")).toBe(hash);
  });

  test("few-shot refuses more examples than the bundle has", async () => {
    const flags = { agent: "few-shot", data: bundle, parser: "qwen25", "few-shot-examples": 20 };
    await expect(
      build(flags, await loadEnvironment({ name: "tau-airline", dataDir: bundle })),
    ).rejects.toThrow(/^Cannot use --few-shot-examples 20: .*airline\.jsonl holds 19$/);
  });
});
