import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { UsageError } from "../../src/errors.ts";
import { createProject, readLanguage } from "../../src/composition/environment/create-project.ts";

const help = `Usage: npm create turnwright [dir] -- [options]

Creates a project in the folder: an environment, a test that plays it with a scripted policy, and a
configuration file with its JSON Schema for editors. Leaves existing files unchanged.

  dir            the project's folder, created if it does not exist (default: the current folder)
  --typescript   write the environment in TypeScript, which needs no compiling
  --python       write the environment in Python; \`turnwright env check\` is its test
  --version      print the version
  --help         print this

npm takes options for itself unless they follow "--": npm create turnwright -- --help
`;

/** Returns the path of a file next to the built program. */
function beside(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

function readArguments(args: string[]) {
  try {
    const flag = { type: "boolean" } as const;
    const options = { help: flag, version: flag, typescript: flag, python: flag };
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (positionals.length > 1) {
      throw new TypeError(`Cannot take ${positionals.length} folders, expected one at the most`);
    }
    return { ...values, dir: positionals[0] ?? "." };
  } catch (error) {
    // Node throws a TypeError for invalid arguments.
    if (!(error instanceof TypeError)) throw error;
    const [problem] = error.message.split(". ");
    throw new UsageError(`${problem} (see npm create turnwright -- --help)`);
  }
}

async function answer(args: string[]): Promise<string> {
  const given = readArguments(args);
  if (given.help === true) return help;
  const manifest = await readFile(beside("../package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { readonly version: string };
  if (given.version === true) return `${version}\n`;
  return await createProject({
    dir: given.dir,
    language: readLanguage(given),
    templateDir: beside("template"),
    schema: await readFile(beside("template/turnwright.schema.json"), "utf8"),
    version,
  });
}

try {
  process.stdout.write(await answer(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`create-turnwright: ${error.message}\n`);
  process.exitCode = 2;
}
