import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findModuleFiles } from "./module-files.ts";

let dir = "";
beforeAll(async () => {
  dir = await realpath(await mkdtemp(path.join(tmpdir(), "turnwright-module-files-")));
  await mkdir(path.join(dir, "tools", "data"), { recursive: true });
  const files: Readonly<Record<string, string>> = {
    "shop.js":
      "import { sell } from \"./tools/sell.js\";\nexport * from './tools/back.mjs';\n" +
      'import "./effects.js";\nimport { UsageError } from "turnwright";\n' +
      'const data = new URL("./tools/data/rows.json", import.meta.url);\nimport("./absent.js");\n',
    "tools/sell.js": 'import { createRequire } from "node:module";\nrequire("../late");\n',
    "tools/back.mjs": 'export { shop } from "../shop.js";\n',
    "effects.js": "",
    "late.js": "",
    "tools/data/rows.json": '{"text": "import \'./other.js\'"}',
    "other.js": "",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(dir, name), text);
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

async function namesOf(entry: string): Promise<readonly string[]> {
  const files = await findModuleFiles(path.join(dir, entry));
  return files.map((file) => path.relative(dir, file).replaceAll(path.sep, "/"));
}

test("follows relative imports only, also in a circle", async () => {
  expect(await namesOf("shop.js")).toEqual([
    "shop.js",
    "tools/sell.js",
    "tools/back.mjs",
    "effects.js",
    "tools/data/rows.json",
    "late.js",
  ]);
});

test("a module without imports is one file, even if the file is absent", async () => {
  expect(await namesOf("effects.js")).toEqual(["effects.js"]);
  expect(await namesOf("nowhere.js")).toEqual(["nowhere.js"]);
});
