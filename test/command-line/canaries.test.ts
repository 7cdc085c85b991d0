import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSglangTestServer, createTextPolicy } from "../../src/testing/index.ts";
import { runCli, type CliResult } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";

const library = (entry: string): string =>
  JSON.stringify(new URL(`../../dist/src/${entry}.js`, import.meta.url).href);
const server = fileURLToPath(
  new URL("../../src/worlds/mcp/mcp-test-server.fixture.mjs", import.meta.url),
);

/** A secret of its own for each place that takes one. */
const canaries = {
  engineKey: "canary-engine/1+7f3a",
  userKey: 'canary-"user"-2-7f3a',
  hubToken: "hf_canary3x7f3a",
  mcpFlag: "canary-flag-4-7f3a",
  mcpWord: "ghp_canary5x7f3a",
  mcpVariable: "canary-variable-6-7f3a",
  mcpHeader: "canary-header-7-7f3a",
  mcpPassword: "canary-password-8-7f3a",
  mcpQuery: "canary-query-9-7f3a",
  mcpPath: "canary10x7f3a9c21d4e6",
  openEnvHeader: "canary-header-11-7f3a",
  openEnvQuery: "canary-query-12-7f3a",
  boxVariable: "canary-box-13-ä-7f3a",
} as const;

const base64 = (text: string) => Buffer.from(text).toString("base64");
const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

function formsOf(secret: string): readonly string[] {
  return [
    secret,
    inJson(secret),
    inJson(inJson(secret)),
    encodeURIComponent(secret),
    base64(secret).replace(/=+$/, "").slice(0, -2),
    base64(`me:${secret}`).slice(8, -4),
  ];
}

/**
 * An environment whose parts hold the canaries, and whose tools print all of them, in all
 * encodings.
 */
const world = `
import { defineEnvironment, defineTool } from ${library("index")};
import { createRenderer } from ${library("renderer/index")};
import { createLocalSandboxes, createMcpTools, createOpenEnv } from ${library("worlds/index")};
const c = JSON.parse(process.env.CANARIES);
const complaint = async (work) => await work.then(() => "", (error) => String(error.message));
const { ECHO: echo, SCRATCH: scratch } = process.env;
const texts = [
  await complaint(createMcpTools({
    url: \`http://me:\${encodeURIComponent(c.mcpPassword)}@\${echo}/s/\${c.mcpPath}/mcp?key=\${c.mcpQuery}\`,
    headers: { authorization: "Bearer " + c.mcpHeader },
  })),
  await complaint(createOpenEnv({
    url: \`http://\${echo}/?key=\${c.openEnvQuery}\`,
    headers: { "x-api-key": c.openEnvHeader },
  })),
  await complaint(createRenderer({ modelDir: "hf:canary/none" })),
];
const tools = await createMcpTools({
  command: process.execPath,
  args: ["--import", scratch + "/loud.mjs", process.env.MCP_SERVER, "variable", "die", "--api-key", c.mcpFlag, c.mcpWord],
  env: { API_KEY: c.mcpVariable },
});
const boxes = createLocalSandboxes({ dir: scratch + "/boxes" });
export default defineEnvironment({
  name: "parrots",
  tasks: [{ instruction: "Say it." }],
  policy: "Repeat. " + c.mcpVariable,
  tools: [...tools, defineTool({
    name: "parrot",
    description: "Repeats.",
    execute: () => [texts, Object.values(c).flatMap((secret) => [
      secret, JSON.stringify({ text: JSON.stringify(secret) }), encodeURIComponent(secret),
      Buffer.from("me:" + secret).toString("base64"), Buffer.from(secret).toString("base64"),
    ])],
  }), defineTool({
    name: "box",
    description: "Repeats from a sandbox.",
    execute: async (_, _state, context) => {
      const box = await boxes.of(context);
      const env = { BOX_KEY: c.boxVariable };
      return (await box.run(["sh", "-c", "echo $BOX_KEY"], { signal: context.signal, env })).stdout;
    },
  })],
  score: () => ({ reward: 1, details: { said: Object.values(c).join(" ") } }),
});
`;

const call = (name: string, given: object = {}) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;

/** A server that refuses each request, and repeats how it was asked. */
async function startEcho() {
  const echo = createServer((request, response) => {
    request.resume();
    const said = JSON.stringify({ url: request.url, ...request.headers });
    response.writeHead(403, { "content-type": "text/plain" }).end(said);
  });
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  return {
    place: `127.0.0.1:${(echo.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      echo.closeAllConnections();
      echo.close();
      await once(echo, "close");
    },
  };
}

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-canaries-"));
  await writeFile(path.join(scratch, "world.mjs"), world);
  const loud = "process.stderr.write(process.argv.join(' ') + ' ' + process.env.API_KEY + '\\n');";
  await writeFile(path.join(scratch, "loud.mjs"), loud);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** All that a run's folder and a command's output hold, by its place. */
async function everything(out: string, { stdout, stderr }: CliResult) {
  const files = await readdir(out, { recursive: true, withFileTypes: true });
  const names = files
    .filter((file) => file.isFile())
    .map((file) => path.join(file.parentPath, file.name));
  const texts = await Promise.all(names.map(async (name) => [name, await readFile(name, "utf8")]));
  return Object.fromEntries([...texts, ...Object.entries({ stdout, stderr })]) as Record<
    string,
    string
  >;
}

function placesOf(said: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(canaries).flatMap(([name, secret]) =>
    Object.entries(said).flatMap(([place, text]) =>
      formsOf(secret).flatMap((form) =>
        text.includes(form) ? [`${name} as ${form} in ${place}`] : [],
      ),
    ),
  );
}

const played = ["--user", "scripted", "--model", smallModelFolder, "--parser", "qwen25"];

describe("no secret of any part is in a run's folder or in a command's output", () => {
  test("in any part and any encoding", async () => {
    await using echo = await startEcho();
    const turns = (id: string) =>
      id.endsWith("#1")
        ? [call("die"), "Bye."]
        : // The variables of a sandbox are registered as secrets from then on.
          [call("box"), call("parrot"), call("variable", { name: "API_KEY" }), "Bye."];
    const policy = await createTextPolicy(turns, { modelDir: smallModelFolder });
    await using engine = await startSglangTestServer({ policy });
    const out = path.join(scratch, "run");
    const printed = await runCli(
      [
        "rollout",
        "--env",
        path.join(scratch, "world.mjs"),
        ...played,
        "--out",
        out,
        "--samples",
        "2",
        "--attempts",
        "1",
        "--url",
        engine.url,
        "--record",
        "all",
        "--api-key-env",
        "TEST_ENGINE_KEY",
        "--user-api-key-env",
        "TEST_USER_KEY",
      ],
      {
        env: {
          CANARIES: JSON.stringify(canaries),
          ECHO: echo.place,
          SCRATCH: scratch,
          TEST_ENGINE_KEY: canaries.engineKey,
          TEST_USER_KEY: canaries.userKey,
          HF_TOKEN: canaries.hubToken,
          HF_ENDPOINT: `http://${echo.place}`,
          HF_HOME: path.join(scratch, "hub"),
          MCP_SERVER: server,
        },
      },
    );
    const said = await everything(out, printed);
    expect(placesOf(said)).toEqual([]);
    // The run played all of it: one episode failed.
    const episodes = said[path.join(out, "episodes.jsonl")]!.trim().split("\n");
    expect(episodes).toHaveLength(2);
    expect(episodes.join("\n").match(/\[redacted\]/g)!.length).toBeGreaterThan(
      5 * Object.keys(canaries).length,
    );
    expect(episodes.find((line) => line.includes('"failed"'))).toContain(
      "its standard error ends with",
    );
    expect(Object.keys(said).map((place) => path.basename(place))).toEqual(
      expect.arrayContaining(["run.json", "events.jsonl", "recording.jsonl", "samples.jsonl"]),
    );
  });

  test("in an agent's command line, and the agent's variables contain none of the canaries", async () => {
    const policy = await createTextPolicy(() => ["Hello."], { modelDir: smallModelFolder });
    await using engine = await startSglangTestServer({ policy });
    const agent = path.join(scratch, "agent.mjs");
    await writeFile(
      agent,
      "console.error(JSON.stringify([process.env.TEST_ENGINE_KEY ?? 'none', process.env.OPEN, process.argv.slice(2)]));" +
        "process.exit(3);",
    );
    const out = path.join(scratch, "agent");
    const command = `${process.execPath} ${agent} --api-key ${canaries.mcpFlag} --name shop`;
    const printed = await runCli(
      [
        "rollout",
        "--env",
        "storefront",
        "--tasks",
        "0",
        "--attempts",
        "1",
        ...played,
        "--url",
        engine.url,
        "--api-key-env",
        "TEST_ENGINE_KEY",
        "--out",
        out,
        "--agent-command",
        command,
      ],
      { env: { TEST_ENGINE_KEY: canaries.engineKey, OPEN: "yes" } },
    );
    const said = await everything(out, printed);
    expect(placesOf(said)).toEqual([]);
    expect(said[path.join(out, "episodes.jsonl")]).toContain(
      inJson('["none","yes",["--api-key","[redacted]","--name","shop"]]'),
    );
    expect(said[path.join(out, "run.json")]).toContain("--api-key [redacted] --name shop");
  });
});

describe("a key in the place of a variable's name", () => {
  const pasted = "sk-pasted-0123456789abcdef";
  const shop = ["--env", "storefront", "--tasks", "0", ...played, "--url", "http://127.0.0.1:9"];

  test.each([
    ["rollout", "--api-key-env", shop],
    ["rollout", "--user-api-key-env", shop],
    ["eval", "--user-api-key-env", shop],
    ["rollout", "--queue-password-env", [...shop, "--queue", "redis://127.0.0.1:9"]],
    ["gateway", "--api-key-env", ["--url", "http://127.0.0.1:9", "--model", smallModelFolder]],
    ["gateway", "--admin-token-env", ["--url", "http://127.0.0.1:9", "--model", smallModelFolder]],
    ["serve", "--token-env", ["--env", "storefront", ...played, "--url", "http://127.0.0.1:9"]],
    ["worker", "--queue-password-env", [...shop, "--queue", "redis://127.0.0.1:9"]],
  ] as const)("%s %s is refused before anything is written", async (command, flag, rest) => {
    const out = path.join(scratch, `refused-${command}${flag}`);
    const place = command === "worker" ? [] : ["--out", out];
    for (const given of [
      [flag, pasted],
      ["--config", await configured(flag, pasted)],
    ]) {
      const { status, stdout, stderr } = await runCli([command, ...rest, ...place, ...given]);
      expect(stderr).toContain(
        `Cannot use ${flag}: its value is not the name of a variable that is set, expected the name of ` +
          "the variable that holds the secret, and not the secret itself",
      );
      expect(status).toBe(2);
      expect(stdout + stderr).not.toContain(pasted);
      await expect(readdir(out)).rejects.toThrow("ENOENT");
    }
  });

  test("a key that is given to an option of another name is not repeated", async () => {
    const settings = path.join(scratch, "wrong.json");
    await writeFile(settings, JSON.stringify({ url: `http://me:${pasted}@127.0.0.1:9` }));
    for (const args of [
      ["rollout", `--api-key=${pasted}`],
      [pasted],
      ["rollout", "--config", settings],
    ]) {
      const { status, stdout, stderr } = await runCli(args);
      expect(status).toBe(2);
      expect(stderr).toContain("[redacted]");
      expect(stdout + stderr).not.toContain(pasted);
    }
  });

  async function configured(flag: string, value: string): Promise<string> {
    const file = path.join(scratch, "config.json");
    await writeFile(file, JSON.stringify({ [flag.slice(2)]: value }));
    return file;
  }
});
