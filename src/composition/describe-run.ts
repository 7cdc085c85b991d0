import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { EngineDescription } from "../engine/engine.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { RunManifest } from "../run/folder/run-folder.ts";
import type { openPlan } from "../run/schedule/planned-run.ts";
import type { RunSettings } from "./config/run-config.ts";
import type { describePlan } from "./config/run-epochs.ts";
import { describeSettings } from "./config/stored-settings.ts";
import { engineFacts } from "./describe-engine.ts";
import { readVersion } from "./version.ts";

/** The parts of a run that `run.json` records. */
export interface RunFacts {
  readonly settings: RunSettings;
  /** The split that is played, given or by default. Absent if a program chooses the tasks. */
  readonly split?: string;
  readonly identity: Readonly<Record<string, string>>;
  /** The plan of the episodes. */
  readonly plan: ReturnType<typeof describePlan> | typeof openPlan;
  readonly engine: EngineDescription;
  readonly columns: ColumnSpecs | undefined;
  readonly renderer: Renderer | undefined;
}

/** Returns the content of `run.json`, without the prompts' time. */
export async function describeRun({
  settings: given,
  split,
  identity,
  plan,
  engine,
  columns,
  renderer,
}: RunFacts): Promise<RunManifest & Pick<RunFacts, "identity">> {
  const named = split === undefined ? given : { ...given, split };
  const { configuration, settings } = describeSettings(named);
  return {
    format: 1,
    turnwright: await readVersion(),
    configuration,
    identity,
    found: {
      ...engineFacts(engine, columns),
      ...(renderer && {
        template: renderer.card,
        vocabularySize: renderer.codec.vocabularySize,
      }),
      plan,
      settings,
    },
  };
}
