import type { Command } from "commander";
import { packageFile } from "../../files/package-file.ts";
import { createProject } from "../../composition/environment/create-project.ts";
import { settingsSchema } from "../../composition/config/settings-schema.ts";
import { readVersion } from "../../composition/version.ts";
import { evalSettings } from "../eval-settings.ts";
import { writeOut } from "../write-out.ts";
import { rolloutSettings } from "./rollout.ts";

/** `turnwright init`: creates a project with an environment. */
export function defineInit(command: Command): void {
  command.description(
    "Writes an environment, a test that plays it with a scripted policy, and a configuration file " +
      "with its JSON Schema for editors. Leaves existing files unchanged.",
  );
  command.action(async (dir: string | undefined) => {
    const said = await createProject({
      dir: dir ?? ".",
      templateDir: packageFile("templates/project"),
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
