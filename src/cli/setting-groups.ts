import { agentSettings } from "../composition/config/agent-config.ts";
import { columnSettings } from "../composition/config/columns-config.ts";
import { conductSettings } from "../composition/config/conduct-config.ts";
import { engineSettings } from "../composition/config/engine-config.ts";
import { limitSettings } from "../composition/config/limits-config.ts";
import { rendererSettings } from "../composition/config/renderer-config.ts";
import { samplingSettings } from "../composition/config/sampling-config.ts";
import { scopeSettings } from "../composition/config/scope-config.ts";
import type { Setting } from "../composition/config/setting.ts";
import { teacherSettings } from "../composition/config/teacher-config.ts";
import { userSettings } from "../composition/config/user-config.ts";
import { handOutSettings } from "../queue/queue-settings.ts";
import { mostUsedHeading, type SettingGroup } from "./option.ts";

/** The settings that most calls need, in order. */
const mostUsed = [
  "env",
  "url",
  "model",
  "engine",
  "user",
  "tasks",
  "samples",
  "trials",
  "temperature",
  "out",
];

/** The names of settings by their heading. A setting belongs to the first heading that has its name. */
const headings: readonly (readonly [heading: string, names: readonly string[]])[] = [
  [mostUsedHeading, mostUsed],
  ["Model:", namesOf(rendererSettings)],
  ["Engine:", namesOf(engineSettings)],
  ["Environment:", ["env-args", "python", "env-processes", "data", "split", "seed"]],
  ["User:", namesOf(userSettings)],
  ["Sampling:", namesOf([...samplingSettings, ...columnSettings])],
  ["Groups:", [...namesOf(scopeSettings), "attempts", "retry-failed"]],
  ["Policy:", namesOf(agentSettings)],
  ["Limits:", [...namesOf(limitSettings), "concurrency", "follow-load", "max-failures"]],
  ["Workers:", namesOf(handOutSettings)],
  ["Teacher:", namesOf(teacherSettings)],
  ["Output:", [...namesOf(conductSettings), "json", "quiet", "view", "metrics-port", "resume"]],
];

/** The heading of the settings that only one command has. */
const otherHeading = "This command:";

/** Sorts a command's settings into groups for its help, in the order of the headings. */
export function groupSettings(table: readonly Setting[]): readonly SettingGroup[] {
  const groups = new Map(
    [...headings, [otherHeading]].map(([heading]) => [heading, [] as Setting[]]),
  );
  for (const setting of table) {
    const [heading] = headings.find(([, names]) => names.includes(setting.name)) ?? [otherHeading];
    groups.get(heading)!.push(setting);
  }
  const place = ({ name }: Setting): number => mostUsed.indexOf(name);
  groups.get(mostUsedHeading)!.sort((one, other) => place(one) - place(other));
  return Array.from(groups, ([heading, settings]) => ({ heading, settings }));
}

function namesOf(settings: readonly Setting[]): readonly string[] {
  return settings.map(({ name }) => name);
}
