import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli } from "../support/run-cli.ts";

let scratch = "";
let hooks = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-modules-"));
  // A hook of Node's module loader, which runs in a thread of its own, writes down each import.
  const loader = path.join(scratch, "loader.mjs");
  await writeFile(
    loader,
    'import { appendFileSync } from "node:fs";\n' +
      "export async function load(url, context, next) {\n" +
      "  appendFileSync(process.env.LOADED_MODULES, `${url}\\n`);\n" +
      "  return next(url, context);\n}\n",
  );
  hooks = path.join(scratch, "hooks.mjs");
  await writeFile(
    hooks,
    `import { register } from "node:module";\nregister(${JSON.stringify(`file://${loader}`)});\n`,
  );
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** Source folders whose modules were joined into a file of the build, by its source map. */
async function foldersIn(url: string): Promise<readonly string[]> {
  const file = new URL(`${url}.map`);
  // A file without source lines only re-exports other files.
  if (!existsSync(file)) return [];
  const map = JSON.parse(await readFile(file, "utf8")) as { sources: string[] };
  return map.sources.flatMap((source) => {
    const [, folder] =
      /^(?:\.\.\/)+((?:src|environments|packages\/[^/]+\/src)\/[^/]+)\//.exec(source) ?? [];
    return folder ?? [];
  });
}

/** The modules that a call loads: our folders in `src`, and packages by name. */
async function loadedBy(args: readonly string[], input = ""): Promise<ReadonlySet<string>> {
  const list = path.join(scratch, `${args.join(" ").replaceAll(/\W+/g, "-")}.txt`);
  const { status, stderr } = await runCli(args, {
    input,
    env: { NODE_OPTIONS: `--import=file://${hooks}`, LOADED_MODULES: list },
  });
  expect(status, stderr).toBe(0);
  const urls = (await readFile(list, "utf8")).trim().split("\n");
  const names = urls.map(async (url) => {
    const [, name] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/.exec(url) ?? [];
    return name === undefined && url.includes("/dist/") ? await foldersIn(url) : (name ?? []);
  });
  return new Set((await Promise.all(names)).flat());
}

const shared = [
  "packages/python-values/src/support",
  "src/async",
  "src/files",
  "src/json",
  "src/secrets",
  "src/text",
];
const light = ["commander", "src/cli", "src/composition", ...shared].toSorted();

describe("a command loads only the modules that it uses", () => {
  test.each([["--version"], ["--help"]])("%s", async (flag) => {
    expect([...(await loadedBy([flag]))].toSorted()).toEqual(light);
  });

  test("parse needs neither a tokenizer nor templates", async () => {
    const line = JSON.stringify({ text: "hi", tools: [] });
    const loaded = await loadedBy(["parse", "--parser", "qwen25"], line);
    for (const one of [
      "src/tokenizer",
      "src/renderer",
      "packages/chat-template/src/evaluate",
      "src/engine",
      "src/user",
    ]) {
      expect(loaded).not.toContain(one);
    }
    for (const one of ["tokenizers", "zod", "ai", "undici"]) expect(loaded).not.toContain(one);
    expect(loaded).toContain("packages/tool-parsers/src/formats");
  });

  test("rollout --help lists the settings without loading the modules that use them", async () => {
    const loaded = await loadedBy(["rollout", "--help"]);
    for (const one of [
      "src/tokenizer",
      "src/renderer",
      "packages/chat-template/src/evaluate",
      "src/run",
      "src/user",
      "zod",
    ]) {
      expect(loaded).not.toContain(one);
    }
  });

  test("env list loads the environments that it lists", async () => {
    const loaded = await loadedBy(["env", "list", "storefront"]);
    expect(loaded).toContain("environments/storefront");
    expect(loaded).not.toContain("environments/tau-bench");
    expect(loaded).not.toContain("src/engine");
  });
});
