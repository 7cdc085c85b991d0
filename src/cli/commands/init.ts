import type { Command } from "commander";
import { packageFile } from "../../files/package-file.ts";
import { createProject, readLanguage } from "../../composition/environment/create-project.ts";
import { settingsSchema } from "../../composition/config/settings-schema.ts";
import { readVersion } from "../../composition/version.ts";
import { evalSettings } from "../eval-settings.ts";
import { writeOut } from "../write-out.ts";
import { rolloutSettings } from "./rollout.ts";

interface InitFlags {
  readonly typescript?: boolean;
  readonly python?: boolean;
}

/** `turnwright init`: creates a project with an environment. */
export function defineInit(command: Command): void {
  command.description(
    "Writes an environment, a test that plays it with a scripted policy, and a configuration file " +
      "with its JSON Schema for editors. Leaves existing files unchanged.",
  );
  command.option("--typescript", "write the environment in TypeScript, which needs no compiling");
  command.option("--python", "write the environment in Python; `env check` is its test");
  command.action(async (dir: string | undefined, flags: InitFlags) => {
    const said = await createProject({
      dir: dir ?? ".",
      language: readLanguage(flags),
      templateDir: packageFile("templates"),
      schema: `${JSON.stringify(configurationSchema(), null, 2)}\n`,
      version: await readVersion(),
    });
    await writeOut(said);
  });
}

/** Returns the schema for the settings of `rollout` and `eval`, because one file may serve both. */
function configurationSchema() {
  const known = new Set(rolloutSettings.map((setting) => setting.name as string));
  return settingsSchema([
    ...rolloutSettings,
    ...evalSettings.filter(({ name }) => !known.has(name)),
  ]);
}
