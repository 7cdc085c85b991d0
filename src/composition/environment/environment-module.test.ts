import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { loadModuleEnvironment, loadModuleUser } from "./environment-module.ts";

let scratch = "";
let moduleCount = 0;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-environment-module-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A module of its own with this source: a file is imported once only. */
async function writeModule(source: string): Promise<string> {
  const file = path.join(scratch, `module-${moduleCount++}.mjs`);
  await writeFile(file, source);
  return file;
}

const members =
  'name: "x", source: "here", splits: { test: 1 }, tools: [], policyText: "", task() {}, open() {}';

describe("loadModuleEnvironment()", () => {
  test("uses the result of an async createEnvironment()", async () => {
    const file = await writeModule(
      `export const createEnvironment = async () => ({ ${members} });`,
    );
    expect(await loadModuleEnvironment(file)).toMatchObject({ name: "x", splits: { test: 1 } });
    expect(await loadModuleUser(file)).toBeUndefined();
  });

  test("takes the environment that is the default export, and the user that it brings", async () => {
    const user = '{ strategy: "own", open() {} }';
    for (const form of ["", "async () => (", "Promise.resolve("]) {
      const end = form === "" ? "" : ")";
      const file = await writeModule(`export default ${form}{ ${members}, user: ${user} }${end};`);
      expect(await loadModuleEnvironment(file)).toMatchObject({ name: "x" });
      expect(await loadModuleUser(file)).toMatchObject({ strategy: "own" });
    }
  });

  test("refuses a file that is absent", async () => {
    await expect(loadModuleEnvironment("./nowhere.js")).rejects.toThrow(
      new UsageError(
        `Cannot find environment ./nowhere.js: ${path.resolve("nowhere.js")} is absent, ` +
          "expected a JavaScript module",
      ),
    );
    await expect(loadModuleEnvironment(scratch)).rejects.toThrow("is no file");
  });

  test.each<[string, string, string]>([
    [
      "no exports",
      "",
      ": it exports nothing, expected a default export that is an environment, or an export createEnvironment()",
    ],
    [
      "another export",
      "export const createLamps = () => {};",
      ": it exports createLamps, expected a default export that is an environment",
    ],
    [
      "an export of another kind",
      "export const createEnvironment = 3;",
      ": createEnvironment is not a function",
    ],
    [
      "a function that throws, with the line",
      "export function createEnvironment() {\n  throw new Error('no lamps');\n}",
      ", line 2: no lamps",
    ],
    [
      "a default export of another kind",
      "export default { name: 'x' };",
      ': its default export has no "source"',
    ],
    [
      "what is no JavaScript, with the line",
      "const a = 1;\nexport default {\n  name: 'x'\n  source: 'y' };",
      ": line 4: Unexpected identifier 'source', at: source: 'y' };",
    ],
    ["an import that is absent", 'import "no-such-lamps";', "no-such-lamps"],
    [
      "nothing that is returned",
      "export function createEnvironment() {}",
      ": createEnvironment() returns no object",
    ],
    [
      "a member that is absent",
      'export const createEnvironment = () => ({ name: "x", source: "here" });',
      ': createEnvironment() returns no "splits", expected an object with the number of tasks',
    ],
    [
      "tools as the model sees them",
      `export const createEnvironment = () => ({ ${members}, tools: [{ type: "function" }] });`,
      ': createEnvironment() returns "tools" of the wrong form, expected a list of what',
    ],
    [
      "a name that begins as τ-bench's do",
      `export const createEnvironment = () => ({ ${members}, name: "tau-x" });`,
      ': createEnvironment() returns "name" of the wrong form, expected letters, digits',
    ],
  ])("refuses %s", async (_, source, message) => {
    const file = await writeModule(source);
    const error = await loadModuleEnvironment(file).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).message).toContain(`environment ${file}`);
    expect((error as UsageError).message).toContain(message);
  });
});

describe("loadModuleUser()", () => {
  test("takes what createUser() returns", async () => {
    const file = await writeModule(
      'export const createUser = () => ({ strategy: "own", open() {} });',
    );
    expect(await loadModuleUser(file)).toMatchObject({ strategy: "own" });
  });

  test("refuses an invalid user", async () => {
    const file = await writeModule("export const createUser = () => ({});");
    await expect(loadModuleUser(file)).rejects.toThrow(
      'createUser() returns no "strategy", expected a text',
    );
  });
});
