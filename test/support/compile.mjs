// Compiles all modules that tests import, once, to a folder that run-compiled.mjs reads. Each run
// has a new folder, so no file in it is older than its source, and two runs do not interfere.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { transformSync } from "rolldown/utils";
import { nodeInput, packageOutput } from "../../scripts/bundle.mjs";
import { createOwnFolder } from "./own-folder.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const sourceFolders = ["src", "environments", "bench", "examples", "packages", "test"];
/** Folders of others' modules, of compiled ones, and of those that run in a browser. */
const otherFolders = /(?:^|\/)(?:node_modules|dist)\/|^src\/viewer\/page\//;
/** A function for syntax that the oldest Node does not have; its text is part of the bundler. */
const helperImports = /from "(@oxc-project\/runtime\/helpers\/\w+)"/g;

/**
 * Called by the test runner before the first test, and again in watch mode. Returns a function that
 * the runner calls at the end.
 */
export default async function setup(project) {
  const { dir, remove } = createOwnFolder(path.join(root, ".compiled"));
  process.env.TURNWRIGHT_COMPILED = dir;
  await compile(dir);
  project.onTestsRerun(async () => {
    try {
      await compile(dir);
    } catch (error) {
      // In watch mode the sources change during the run.
      console.error(error.message);
    }
  });
  return remove;
}

async function compile(dir) {
  // Compiled files of deleted sources are deleted too.
  rmSync(dir, { recursive: true, force: true });
  const helpers = new Set();
  const folders = new Set();
  const write = (name, text) => {
    const file = path.join(dir, name);
    const folder = path.dirname(file);
    if (!folders.has(folder)) mkdirSync(folder, { recursive: true });
    folders.add(folder);
    writeFileSync(file, text);
  };
  for (const name of sourceFolders.flatMap(listSources)) {
    const code = compileModule(name);
    for (const [, helper] of code.matchAll(helperImports)) helpers.add(helper);
    write(name.replace(/\.ts$/, ".js"), code);
  }
  for (const helper of helpers) write(`${helper}.js`, await bundleHelper(helper));
}

/** Returns the modules of a folder, as paths below the root. */
function listSources(folder) {
  return readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /(?<!\.d)\.ts$/.test(entry.name))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .filter((name) => !otherFolders.test(name));
}

/** Returns the JavaScript of a module. It ends with a map, as lines are found in the source. */
function compileModule(name) {
  const file = path.join(root, name);
  const { code, map, errors } = transformSync(file, readFileSync(file, "utf8"), {
    target: nodeInput.transform.target,
    sourcemap: true,
    typescript: { onlyRemoveTypeImports: true },
    tsconfig: false,
  });
  if (errors.length > 0) {
    throw new Error(`Cannot compile ${name}: ${errors.map(({ message }) => message).join("\n")}`);
  }
  const { version, names, mappings } = map;
  const json = JSON.stringify({ version, names, mappings, sources: [pathToFileURL(file).href] });
  const data = Buffer.from(json).toString("base64");
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${data}\n`;
}

async function bundleHelper(helper) {
  const build = await rolldown({ input: helper, ...nodeInput });
  const { output } = await build.generate(packageOutput);
  await build.close();
  return output[0].code;
}
