import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEchoPolicy, startSglangTestServer } from "../../src/testing/index.ts";
import { callCli } from "../support/call-cli.ts";
import { smallModelFolder as model } from "../support/small-model.ts";

/** The first file of a command, as the package names it. */
const startFile = fileURLToPath(new URL("../../dist/src/cli/start.cjs", import.meta.url));

let scratch = "";
/** Addresses of servers by their answer: a status, or `engine` for one that plays SGLang. */
const urls: Record<string, string> = {};
const opened: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  // A folder without siblings, so that no data are found next to it.
  scratch = path.join(await mkdtemp(path.join(tmpdir(), "turnwright-mistakes-")), "project");
  await mkdir(scratch);
  const engine = await startSglangTestServer({ policy: createEchoPolicy() });
  urls["engine"] = engine.url;
  opened.push(async () => await engine.close());
  for (const status of [401, 404, 429]) {
    const server = createServer((_, response) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end('{"error":{"message":"said no"}}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    urls[status] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    opened.push(async () => await new Promise((resolve) => server.close(resolve)));
  }
  // A port that no process listens on.
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  urls["gone"] = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
  await new Promise((resolve) => gone.close(resolve));
  await writeFiles();
});
afterAll(async () => {
  for (const close of opened) await close();
  await rm(path.dirname(scratch), { recursive: true });
});

const plainTemplate =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

async function writeFiles(): Promise<void> {
  const file = async (name: string, text: string) =>
    await writeFile(path.join(scratch, name), text);
  for (const folder of ["empty", "foreign", "other-run", "base", "no-tools", "several/one"]) {
    await mkdir(path.join(scratch, folder), { recursive: true });
  }
  const config = path.join(model, "tokenizer_config.json");
  const { chat_template: _template, ...base } = JSON.parse(
    await readFile(config, "utf8"),
  ) as object & {
    chat_template?: string;
  };
  for (const folder of ["base", "no-tools"]) {
    for (const name of ["tokenizer.json", "config.json"]) {
      await cp(path.join(model, name), path.join(scratch, folder, name));
    }
  }
  await file("base/tokenizer_config.json", JSON.stringify(base));
  const withTemplate = JSON.stringify({ ...base, chat_template: plainTemplate });
  await file("no-tools/tokenizer_config.json", withTemplate);
  await file("foreign/package.json", "{}");
  await file("several/one/run.json", "{}");
  await file("a-file", "");
  await file("broken.mjs", "export default {\n");
  await file("outer.mjs", 'import "./inner.mjs";\n');
  await file("inner.mjs", "const a = 1;\n\nlet a = 2;\n");
  await file("typed.ts", "export default 1 as number;\n");
  await file("nothing.mjs", "export const environment = 1;\n");
  const lamps = JSON.stringify(new URL("../../dist/examples/lamps.js", import.meta.url).href);
  await file("silent.mjs", `export { createEnvironment } from ${lamps};\n`);
  await file("typo.json", '{ "modle": "x" }');
  await file("cut.json", '{ "env": "storefront",');
  const library = JSON.stringify(new URL("../../dist/src/worlds/index.js", import.meta.url).href);
  await file(
    "mcp.mjs",
    `import { createMcpTools } from ${library};\nexport default await createMcpTools({ command: "x" });\n`,
  );
  // A hook of Node's module loader that makes a package absent.
  await file(
    "without-package.mjs",
    `import { register } from "node:module";
const hook = \`export async function resolve(name, context, next) {
  if (name !== process.env.MISSING) return await next(name, context);
  throw Object.assign(new Error("Cannot find package '" + name + "'"), { code: "ERR_MODULE_NOT_FOUND" });
}\`;
register("data:text/javascript," + encodeURIComponent(hook));
`,
  );
  await file(
    "old-node.cjs",
    'Object.defineProperty(process.versions, "node", { value: "18.20.4" });\n',
  );
}

/** Runs a command in the scratch folder, and returns its exit status and output. */
async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly status: number | null; readonly stderr: string }> {
  const { status, stderr } = await callCli(args, { cwd: scratch, env });
  return { status, stderr };
}

/** The same of a process of its own. */
async function start(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly status: number | null; readonly stderr: string }> {
  const child = spawn(process.execPath, [startFile, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    cwd: scratch,
    env: { ...process.env, ...env },
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { status, stderr };
}

interface Mistake {
  /** Flags beside those of a run that would do; or a whole command. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  /** Variables of its process, which is one of its own then. */
  readonly env?: Readonly<Record<string, string>>;
  /** The one line, after `turnwright: `; `{engine}` and the like are addresses. */
  readonly line: string | RegExp;
}

const mistakes: Readonly<Record<string, Mistake>> = {
  "a folder that there is not": {
    flags: { model: "./nowhere" },
    line: "Cannot load the model: ./nowhere is absent; expected a folder with tokenizer.json and a chat template",
  },
  "an empty folder": {
    flags: { model: "./empty" },
    line: "Cannot load the model: ./empty is empty; expected a folder with tokenizer.json and a chat template",
  },
  "a base model": {
    flags: { model: "./base" },
    line:
      "Cannot render for the model in ./base: it has no chat template; put one into chat_template.jinja " +
      "(base models have none, their instruction-tuned versions do)",
  },
  "a model with unknown calls": {
    flags: { model: "./no-tools" },
    line: "Cannot tell the tool-call parser from the chat template: name one with --parser (see `parse --list`)",
  },
  "a prompt without tools": {
    flags: { model: "./no-tools", parser: "qwen25" },
    line:
      "Cannot show the tool find_customer with the chat template of ./no-tools: the prompt does not define it; " +
      "give the model a chat template that prints tools (publishers often keep one for tools apart), or choose " +
      "the agent act or react, which writes the tools into the system message",
  },
  "a parser with a slip of the pen": {
    flags: { parser: "qwne25" },
    line: 'Cannot find tool-call parser "qwne25": did you mean qwen25?',
  },
  "a name of the hub": {
    flags: { model: "Qwen/Qwen3-0.6B" },
    line:
      "Cannot find the model Qwen/Qwen3-0.6B: there is no such folder; for the Hugging Face hub write " +
      "hf:Qwen/Qwen3-0.6B",
  },
  "a wrong port": {
    flags: { url: "{gone}" },
    line: /^Cannot reach the engine at http:\/\/\S+: no connection \(connect ECONNREFUSED \S+\), expected an SGLang server; is it running, and is the address right\?$/,
  },
  "an address without http": {
    flags: { url: "127.0.0.1:30000" },
    line: 'Cannot use "127.0.0.1:30000" as the engine\'s url: expected one such as http://127.0.0.1:30000',
  },
  "an engine that wants a key (401)": {
    flags: { url: "{401}" },
    line:
      "Cannot describe the engine at {401}: HTTP 401 (said no), expected an SGLang server (a valid apiKey); " +
      "--api-key-env names the variable that holds the key",
  },
  "another server (404)": {
    flags: { url: "{404}" },
    line:
      "Cannot describe the engine at {404}: HTTP 404 (said no), expected an SGLang server (a request that it " +
      "accepts); is it another server that answers at --url, or another --engine?",
  },
  "an engine that is full (429)": {
    flags: { url: "{429}" },
    line: "Cannot describe the engine at {429}: HTTP 429 (said no), expected an SGLang server (room in its queue)",
  },
  "a user's model that wants a key (401)": {
    flags: { user: "llm", "user-model": "x", "user-url": "{401}/v1" },
    line:
      "Cannot use --user-url {401}/v1: HTTP 401, no key was sent; --user-api-key-env names the variable that " +
      "holds the key",
  },
  "a user's model whose key is wrong": {
    flags: {
      user: "llm",
      "user-model": "x",
      "user-url": "{401}/v1",
      "user-api-key-env": "SOME_KEY",
    },
    env: { SOME_KEY: "wrong" },
    line:
      "Cannot use --user-url {401}/v1: HTTP 401, the key in SOME_KEY was sent; --user-api-key-env names the " +
      "variable that holds the key",
  },
  "a user's model that is elsewhere (404)": {
    flags: { user: "llm", "user-model": "x", "user-url": "{404}" },
    line:
      "Cannot use --user-url {404}: HTTP 404 at {404}/chat/completions; expected an address such as " +
      "http://127.0.0.1:8000/v1",
  },
  "a user's model without an address": {
    flags: { user: "llm" },
    line: "Missing --user-url: the user model's endpoint, such as http://127.0.0.1:8000/v1",
  },
  "a folder with other files": {
    flags: { out: "foreign" },
    line:
      "Cannot start a run in foreign: it holds package.json and is not a run's folder, expected a new or an empty " +
      "one, such as foreign/first",
  },
  "a file in the place of a folder": {
    flags: { out: "a-file" },
    line: /^Cannot create the run folder a-file: EEXIST: .*; choose an --out that is a folder, then start the same command again: finished episodes are kept$/,
  },
  "a place that cannot be written": {
    flags: { out: "a-file/run" },
    line: /^Cannot create the run folder a-file\/run: ENOTDIR: .*; choose an --out that is a folder, then start the same command again: finished episodes are kept$/,
  },
  "a module with a syntax error": {
    flags: { env: "./broken.mjs" },
    line: "Cannot load environment ./broken.mjs: line 2: Unexpected end of input",
  },
  "a module that imports one with a syntax error": {
    flags: { env: "./outer.mjs" },
    line:
      "Cannot load environment ./outer.mjs: in inner.mjs, line 3: Identifier 'a' has already been declared, " +
      "at: let a = 2;",
  },
  "a module that there is not": {
    flags: { env: "./my-environment.js" },
    line: /^Cannot find environment \.\/my-environment\.js: \S+\/my-environment\.js is absent, expected a JavaScript module$/,
  },
  "a module that exports no environment": {
    flags: { env: "./nothing.mjs" },
    line:
      "Cannot use environment ./nothing.mjs: it exports environment, expected a default export that is an " +
      "environment, or an export createEnvironment()",
  },
  "an environment with a slip of the pen": {
    flags: { env: "storefornt" },
    line:
      'Cannot find environment "storefornt": did you mean storefront? (expected one of tau-retail, ' +
      "tau-airline, storefront), or a module such as ./storefornt.js or ./storefornt.py",
  },
  "τ-bench without its data": {
    flags: { env: "tau-retail" },
    line:
      "Cannot find τ-bench's data: fetch it with `turnwright env pull tau-bench --to data/tau-bench`, or name a " +
      "bundle folder with --data DIR or TURNWRIGHT_TAU_BENCH (looked in data/tau-bench)",
  },
  "a key with a slip of the pen in a configuration": {
    flags: { config: "typo.json" },
    line: 'Cannot use "modle" in typo.json: unknown setting, did you mean model?',
  },
  "a configuration that is cut off": {
    flags: { config: "cut.json" },
    line: /^Cannot read the configuration cut\.json: Expected .+ in JSON at position 22/,
  },
  "a flag with a slip of the pen": {
    command: ["rollout", "--concurency", "3"],
    line: "unknown option '--concurency' (Did you mean --concurrency?) (see --help)",
  },
  "a command with a slip of the pen": {
    command: ["rolout"],
    line: "unknown command 'rolout' (Did you mean rollout?) (see --help)",
  },
  "a task that there is not": {
    flags: { tasks: "99999" },
    line: 'Cannot play task 99999: split "test" has 200 tasks, expected 0 to 199',
  },
  "no tasks at all": {
    flags: { tasks: "" },
    line: 'Cannot read tasks "": "" is neither a number nor a range such as 0-31, nor "all"',
  },
  "a split with a slip of the pen": {
    flags: { split: "trian" },
    line: 'Cannot find split "trian" of storefront: did you mean train? (expected one of train, test); name one by the setting split',
  },
  "an engine whose package is missing": {
    command: [
      "rollout",
      "--engine",
      "llama",
      "--gguf",
      "hf:nobody/nothing:q4",
      "--env",
      "storefront",
      "--user",
      "scripted",
      "--model",
      model,
    ],
    env: { NODE_OPTIONS: "--import=./without-package.mjs", MISSING: "node-llama-cpp" },
    line: /^Cannot load the llama engine: the optional package node-llama-cpp does not load .*npm i node-llama-cpp@/,
  },
  "an MCP server without the client's package": {
    flags: { env: "./mcp.mjs" },
    env: {
      NODE_OPTIONS: "--import=./without-package.mjs",
      MISSING: "@modelcontextprotocol/client",
    },
    line:
      "Cannot load environment ./mcp.mjs, line 2: Cannot use MCP servers: the optional package " +
      "@modelcontextprotocol/client does not load (Cannot find package '@modelcontextprotocol/client'), " +
      "install it: npm i @modelcontextprotocol/client@2",
  },
  "a run's folder that is none": {
    command: ["show", "nowhere"],
    line: "Cannot read nowhere/run.json: no such file, expected a run's folder",
  },
  "the folder of all runs in the place of one": {
    command: ["show", "several"],
    line: "Cannot read several/run.json: no such file, expected a run's folder, such as several/one",
  },
  "a folder that looks like a run, for the judge": {
    command: ["identify-errors", "several/one"],
    line: "Cannot read several/one/run.json: expected a run of format 1",
  },
  "a folder as the environment": {
    flags: { env: "." },
    line:
      'Cannot find environment ".": expected one of tau-retail, tau-airline, storefront, or a module such as ' +
      "./my-environment.js or ./my-environment.py",
  },
  "an environment of a library that is not known": {
    flags: { env: "gemm:game" },
    line:
      'Cannot find environment "gemm:game": expected one of tau-retail, tau-airline, storefront, or a module such as ' +
      "./my-environment.js or ./my-environment.py, or an environment of a library: verifiers:NAME, " +
      "reasoning-gym:NAME, gem:NAME, textarena:NAME, gymnasium:NAME, skyrl-gym:NAME",
  },
  "a configuration as the environment": {
    flags: { env: "./typo.json" },
    line: "Cannot load environment ./typo.json: it is data, expected a JavaScript module",
  },
  "an environment without a user, and none named": {
    flags: { env: "./silent.mjs", user: "" },
    line:
      "Missing --user: ./silent.mjs brings no user of its own, expected who the agent talks to, such as " +
      "llm or scripted",
  },
  "a Node that is too old": {
    command: ["--help"],
    env: { NODE_OPTIONS: "--require=./old-node.cjs" },
    line: "Cannot run on Node 18.20.4, expected 20.19 or newer (https://nodejs.org)",
  },
};

/** With addresses in the place of their names. */
function filled(text: string): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => urls[name] ?? whole);
}

const good = {
  env: "storefront",
  split: "test",
  user: "scripted",
  tasks: "0",
  model,
  url: "{engine}",
  out: "run",
};

test.each(Object.entries(mistakes))("%s is answered in one line", async (_, mistake) => {
  const { flags = {}, env, line } = mistake;
  const given = Object.entries({ ...good, ...flags }).flatMap(([name, value]) =>
    name === "user" && value === "" ? [] : [`--${name}`, filled(value)],
  );
  const args = mistake.command ?? ["rollout", "--quiet", ...given];
  const none = { TURNWRIGHT_TAU_BENCH: path.join(scratch, "no") };
  const { status, stderr } =
    env === undefined ? await run(args, none) : await start(args, { ...none, ...env });
  expect(stderr).toMatch(/^turnwright: [^\n]+\n$/);
  const said = stderr.slice("turnwright: ".length, -1);
  if (typeof line === "string") expect(said).toBe(filled(line));
  else expect(said).toMatch(line);
  expect(status).toBe(2);
});

test("TypeScript that this Node cannot run is answered in one line", async () => {
  const given = Object.entries({ ...good, env: "./typed.ts" });
  const args = given.flatMap(([name, value]) => [`--${name}`, filled(value)]);
  const { stderr } = await run(["rollout", "--quiet", ...args], {});
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isRun = major > 22 || (major === 22 && minor >= 18);
  expect(stderr).toBe(
    isRun
      ? "turnwright: Cannot use environment ./typed.ts: default is not a function\n"
      : `turnwright: Cannot load environment ./typed.ts: Node ${process.versions.node} runs no TypeScript, ` +
          "expected Node 22.18 or newer, the package tsx (npm install --save-dev tsx), or the module that it " +
          "compiles to\n",
  );
});

test("another run's folder is named, with what differs", async () => {
  const args = (seed: string) =>
    Object.entries({ ...good, out: "other-run", seed }).flatMap(([name, value]) => [
      `--${name}`,
      filled(value),
    ]);
  expect((await run(["rollout", "--quiet", ...args("0")], {})).status).toBe(0);
  expect(await run(["rollout", "--quiet", ...args("9")], {})).toEqual({
    status: 2,
    stderr:
      "turnwright: Cannot resume other-run: seed was 0 and is 9; start with the same settings or choose another --out\n",
  });
});

test("a corrected command starts in the same folder if nothing was played yet", async () => {
  const args = (more: Readonly<Record<string, string>>) =>
    Object.entries({ ...good, out: "mended", ...more }).flatMap(([name, value]) => [
      `--${name}`,
      filled(value),
    ]);
  const wrong = { model: "./no-tools", parser: "qwen25" };
  expect((await run(["rollout", "--quiet", ...args(wrong)], {})).status).toBe(2);
  expect(await run(["rollout", "--quiet", ...args({})], {})).toEqual({ status: 0, stderr: "" });
});

test("the first file can be read by Node of any age", async () => {
  const code = await readFile(startFile, "utf8");
  const bare = code.replaceAll(/"(?:[^"\\]|\\.)*"|\/\/[^\n]*/g, '""');
  expect(bare).not.toMatch(
    /`|=>|\b(?:const|let|class|import|export|async|await)\b|\?\?|\?\.|\.\.\./,
  );
});
