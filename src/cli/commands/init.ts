import type { Command } from "commander";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../../errors.ts";
import { makeFolder } from "../../internal/make-folder.ts";
import { packageFile } from "../../internal/package-file.ts";
import { settingsSchema } from "../../setup/settings-schema.ts";
import { readVersion } from "../../setup/version.ts";
import { evalSettings } from "../eval-settings.ts";
import { writeOut } from "../write-out.ts";
import { rolloutSettings } from "./rollout.ts";

/** The files of a new project, by the names of what they are made from. */
const templates: Readonly<Record<string, string>> = {
  "package.json": "package.json",
  "my-environment.js": "my-environment.js",
  // The package's own tests stay out of it by their names.
  "test-of-my-environment.js": "my-environment.test.js",
  "turnwright.json": "turnwright.json",
  "README.md": "README.md",
  // No package can hold a file of that name.
  gitignore: ".gitignore",
};

const schemaFile = "turnwright.schema.json";

/** `turnwright init`: begins a project with an environment of its own. */
export function defineInit(command: Command): void {
  command.description(
    "Writes an environment, a test that plays it with a scripted policy, and a configuration file " +
      "with its JSON Schema for editors. No file that is there already is touched.",
  );
  command.action(async (dir: string | undefined) => {
    await createProject(dir ?? ".");
    const into =
      dir === undefined || dir === "."
        ? []
        : [`cd ${/^[\w./-]+$/.test(dir) ? dir : JSON.stringify(dir)}`];
    const steps = [
      ...into,
      "npm install",
      "npm test",
      "npx turnwright env check ./my-environment.js",
    ];
    await writeOut(`Created a project in ${path.resolve(dir ?? ".")}. Next:\n`);
    for (const step of steps) await writeOut(`  ${step}\n`);
  });
}

/** @throws UsageError where a file of the project is there already, or the folder cannot be written. */
async function createProject(dir: string): Promise<void> {
  const files = new Map([[schemaFile, `${JSON.stringify(configurationSchema(), null, 2)}\n`]]);
  const name = packageName(path.basename(path.resolve(dir)));
  const version = await readVersion();
  for (const [template, file] of Object.entries(templates)) {
    const text = await readFile(packageFile(`templates/project/${template}`), "utf8");
    files.set(file, text.replaceAll("NAME", name).replaceAll("VERSION", version));
  }
  for (const file of files.keys()) {
    if ((await stat(path.join(dir, file)).catch(() => undefined)) === undefined) continue;
    throw new UsageError(
      `Cannot create a project in ${dir}: ${file} is there already, expected a folder without it`,
    );
  }
  try {
    await makeFolder(dir);
    for (const [file, text] of files) await writeFile(path.join(dir, file), text, { flag: "wx" });
  } catch (error) {
    throw new UsageError(`Cannot create a project in ${dir}: ${describeError(error)}`);
  }
}

/** Of `rollout` and of `eval`: one file may serve either. */
function configurationSchema() {
  const known = new Set(rolloutSettings.map((setting) => setting.name as string));
  return settingsSchema([
    ...rolloutSettings,
    ...evalSettings.filter(({ name }) => !known.has(name)),
  ]);
}

/** A name that npm takes. */
function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name === "" ? "my-environment" : name;
}
