import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../../errors.ts";
import { makeFolder } from "../../files/make-folder.ts";

/** Options for a new project. */
interface ProjectOptions {
  /** The project's folder. It is created if it does not exist. */
  readonly dir: string;
  /** The folder of the package's templates. */
  readonly templateDir: string;
  /** JSON Schema of the configuration file, as text. */
  readonly schema: string;
  /** The version of this package that the project depends on. */
  readonly version: string;
}

/** The files of a new project, by the names of their templates. */
const templates: Readonly<Record<string, string>> = {
  "package.json": "package.json",
  "my-environment.js": "my-environment.js",
  // Another name keeps the template out of this package's own tests.
  "test-of-my-environment.js": "my-environment.test.js",
  "turnwright.json": "turnwright.json",
  "README.md": "README.md",
  // npm leaves a file with the name `.gitignore` out of packages.
  gitignore: ".gitignore",
};

/**
 * Creates a project: an environment, a test that plays it with a scripted policy, and a
 * configuration file with its schema. Leaves existing files unchanged.
 * @returns a message for the user with the place and the next steps.
 * @throws UsageError if a file of the project exists, or if the folder cannot be written.
 */
export async function createProject(options: ProjectOptions): Promise<string> {
  const { dir, templateDir, schema, version } = options;
  const files = new Map([["turnwright.schema.json", schema]]);
  const name = packageName(path.basename(path.resolve(dir)));
  for (const [template, file] of Object.entries(templates)) {
    const text = await readFile(path.join(templateDir, template), "utf8");
    files.set(file, text.replaceAll("NAME", name).replaceAll("VERSION", version));
  }
  for (const file of files.keys()) {
    if ((await stat(path.join(dir, file)).catch(() => undefined)) === undefined) continue;
    throw new UsageError(
      `Cannot create a project in ${dir}: ${file} is there already, expected a folder without it ` +
        "(name a new one)",
    );
  }
  try {
    await makeFolder(dir);
    for (const [file, text] of files) await writeFile(path.join(dir, file), text, { flag: "wx" });
  } catch (error) {
    throw new UsageError(`Cannot create a project in ${dir}: ${describeError(error)}`);
  }
  return describeProject(dir);
}

function describeProject(dir: string): string {
  const isHere = path.resolve(dir) === process.cwd();
  const steps = [
    ...(isHere ? [] : [`cd ${/^[\w./-]+$/.test(dir) ? dir : JSON.stringify(dir)}`]),
    "npm install",
    "npm test",
    "npx turnwright env check ./my-environment.js",
  ];
  return `Created a project in ${path.resolve(dir)}. Next:\n${steps.map((step) => `  ${step}\n`).join("")}`;
}

/** Returns a valid npm package name for a folder. */
function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name === "" ? "my-environment" : name;
}
