import type { Engine, GenerateRequest, Generation } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import { lamps, lampSetup } from "./lamp-run.fixture.ts";
import type { LiveRun } from "./live-run.ts";
import { fakeMachine } from "./machine.fixture.ts";
import { testManifest } from "./folder/run-folder.fixture.ts";
import { RunFolder, type RunFolderOptions } from "./folder/run-folder.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { startRun } from "./start-run.ts";
import { createTaskList, type TaskSource } from "./schedule/task-source.ts";

/** Fifty lamps in a repeatable environment. */
export const fiftyLamps: Environment = { ...lamps(50), repeatable: true };

let pid = 100;

/** Opens a run's folder as another process on the same machine, which has it until it is disposed of. */
export async function openLamps(
  dir: string,
  options: Partial<RunFolderOptions> = {},
): Promise<RunFolder> {
  pid += 1;
  const lock = { machine: fakeMachine({ pid }) };
  return await RunFolder.open(dir, testManifest, { retryFailed: false, ...options, lock });
}

/** An engine that switches the lamp on and says goodbye. It throws the callback's error, if any. */
export function switchingEngine(
  onRequest: (request: GenerateRequest, turn: number) => unknown = () => undefined,
): Engine {
  const [stop] = createCharacterRenderer().stopTokenIds;
  return {
    ...preparedEngine([]),
    async generate(request, options): Promise<Generation> {
      // The system message and the user's first line have one stop each.
      const stops = request.promptIds.filter((id) => id === stop).length;
      const turn = Math.floor((stops - 2) / 2);
      const special = await onRequest(request, turn);
      if (special instanceof Error) throw special;
      const reply = says(turn === 0 ? switchCall : "Goodbye!");
      return await preparedEngine([reply]).generate(request, options);
    },
  };
}

/** The first lamps, each once. */
export function lampList(count: number): TaskSource {
  const taskIndexes = Array.from({ length: count }, (_, index) => index);
  return createTaskList(fiftyLamps, { split: "test", taskIndexes });
}

/** Plays two attempts at each of three lamps, four at once, unless options change that. */
export function startLamps({
  engine = switchingEngine(),
  ...options
}: Partial<StartRunOptions> & { readonly engine?: Engine } = {}): LiveRun {
  return startRun({
    source: lampList(3),
    setup: lampSetup({ environment: fiftyLamps, engine }),
    grouping: { size: 2 },
    admission: { concurrency: 4 },
    ...options,
  });
}

/** Takes all groups of a run, and sorts them by index. */
export async function takeAll(run: AsyncIterable<EpisodeGroup>): Promise<readonly EpisodeGroup[]> {
  const groups: EpisodeGroup[] = [];
  for await (const group of run) groups.push(group);
  return groups.toSorted((one, other) => one.groupIndex - other.groupIndex);
}
