import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { UsageError } from "../../src/errors.ts";
import { createProject } from "../../src/composition/environment/create-project.ts";

const help = `Usage: npm create turnwright [dir]

Begins a project in the folder: an environment, a test that plays it with a scripted policy, and a
configuration file with its JSON Schema for editors. No file that is there already is touched.

  dir         made where it is not there yet (default: the folder that it is called in)
  --version   print the version
  --help      print this

npm keeps what begins with "-" for itself, except behind "--": npm create turnwright -- --help
`;

/** What is beside this file once it is built. */
function beside(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

function readArguments(args: string[]) {
  try {
    const options = { help: { type: "boolean" }, version: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (positionals.length > 1) {
      throw new TypeError(`Cannot take ${positionals.length} folders, expected one at the most`);
    }
    return { ...values, dir: positionals[0] ?? "." };
  } catch (error) {
    // Whatever Node finds wrong with arguments.
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
