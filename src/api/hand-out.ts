import { requireIds, workersNeedIds } from "../composition/config/chat-config.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { UsageError } from "../errors.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { readVariable } from "../secrets/read-variable.ts";
import type { Redactor } from "../secrets/redactor.ts";
import { readHandOutConfig, type HandOutConfig } from "../queue/queue-settings.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import { Listeners } from "../run/schedule/listeners.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { AdmissionOptions } from "../run/start-run-options.ts";
import { createRun, type Run } from "../composition/create-run.ts";
import { readRunConfig } from "../composition/config/run-config.ts";
import { settingsOf, type RolloutOptions } from "./rollout-options.ts";

/** A run that workers play. Dispose it after the run to close all of its parts. */
export interface HandedOut extends AsyncDisposable {
  /** The player that sends each attempt to a worker. */
  readonly player: AttemptPlayer;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  readonly folder: RunFolder;
  /** The number of attempts that workers play at the same time. */
  readonly admission: AdmissionOptions;
  readonly redactor: Redactor;
  /** Called when the run is finished: no later start needs the workers' files. */
  readonly finished?: () => void;
}

/** A queued run together with the assembled run. */
interface OpenedHandedOut {
  readonly handedOut: HandedOut;
  readonly run: Run;
}

/**
 * Opens the queue and the folder of a run that workers play. Takes the options that workers start with, and `queue`,
 * `shared` and `out`. If `source` chooses the tasks, `run.json` records no plan.
 *
 * @throws UsageError if a part is an object, `out` is missing, or the store or shared place cannot be used.
 * @throws RolloutError if the engine does not answer.
 */
export async function openHandedOut(options: RolloutOptions): Promise<OpenedHandedOut> {
  const config = readConfig(options);
  refuseObjects(options);
  if (config.type === "queue") {
    readVariable(process.env, config.queue.passwordEnv, "queuePasswordEnv");
  }
  const { onQueue = () => {}, now, signal } = options;
  const asked = settingsOf(options);
  if (asked["out"] === undefined) {
    throw new UsageError(
      "Missing out: a run that is handed out needs a folder, by which it finds again what workers " +
        "played while it was stopped",
    );
  }
  const runConfig = readRunConfig({ user: "scripted", ...asked });
  requireIds(runConfig.engine, workersNeedIds);
  const { openPlayers } = await import("../queue/open-queued-run.ts");
  const run = await createRun(runConfig, withoutUndefined({ now, signal }));
  const messages = forwardMessages(onQueue);
  const opened: AsyncDisposable[] = [messages, run];
  const close = async (): Promise<void> => {
    for (const part of opened.splice(0).toReversed()) await part[Symbol.asyncDispose]();
  };
  try {
    const { say } = messages;
    const folder = await run.openFolder(say, { isOpen: options.source !== undefined });
    opened.push(folder);
    const queued = await openPlayers(run, config, { folder, say, signal });
    opened.push(queued);
    const { player, redactor, concurrency, finished } = queued;
    const admission = { concurrency };
    const { setup } = run;
    return {
      handedOut: {
        player,
        redactor,
        setup,
        folder,
        admission,
        ...(finished && { finished }),
        [Symbol.asyncDispose]: close,
      },
      run,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Forwards messages about a queue. Errors of the listener are thrown on disposal, so that the queue's work does not
 * fail.
 */
function forwardMessages(
  onQueue: (text: string) => void,
): AsyncDisposable & { readonly say: (text: string) => void } {
  let failure: { readonly error: unknown } | undefined;
  const listeners = new Listeners({
    signal: new AbortController().signal,
    onFailure: (error) => void (failure ??= { error }),
  });
  return {
    say: (text) => listeners.tell("report to onQueue", () => onQueue(text)),
    async [Symbol.asyncDispose]() {
      await listeners.settle();
      if (failure !== undefined) throw failure.error;
    },
  };
}

function readConfig({ workers, queue, queuePasswordEnv, shared }: RolloutOptions): HandOutConfig {
  const settings = { workers, queue, "queue-password-env": queuePasswordEnv, shared };
  const config = readHandOutConfig(withoutUndefined(settings));
  if (config !== undefined) return config;
  throw new UsageError("Missing queue: the Valkey or Redis that attempts are handed out by");
}

/** Throws if a part is an object, because workers create their own parts from names. */
function refuseObjects({
  environment,
  engine,
  renderer,
  user,
  agent,
  clock,
}: RolloutOptions): void {
  const parts = { environment, engine, renderer, user, agent, clock };
  for (const [name, part] of Object.entries(parts)) {
    if (typeof part !== "object") continue;
    const expected = {
      renderer: "model and the settings of the renderer",
      clock: "none: workers keep deadlines by clocks of their own",
    }[name];
    throw new UsageError(
      `Cannot hand out a run whose ${name} is an object, which does not travel to workers: expected ` +
        (expected ?? "a name or a module's path, as workers are given"),
    );
  }
}
