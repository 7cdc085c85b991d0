import { startViewer, type ViewerServer } from "./server.ts";
import { openRuns } from "./source/run-catalog.ts";

/** Options of `startRunViewer()`. */
export interface RunViewerOptions {
  /** A port of 127.0.0.1. Default 0: any free one. */
  readonly port?: number;
  /** A model folder whose tokenizer reads the tokens' texts. Default: the model of each run. */
  readonly model?: string;
  /** The lowest reward of a success. Default: the environment's own verdict, or the reward 1. */
  readonly successThreshold?: number;
}

/**
 * Serves runs to a browser on this machine, read-only, as `turnwright view` does. A run may still be playing.
 *
 * @param dirs - The runs' folders, and folders of runs.
 * @throws UsageError if a folder has no run, or if the port is in use.
 */
export async function startRunViewer(
  dirs: readonly string[],
  { port = 0, model, successThreshold }: RunViewerOptions = {},
): Promise<ViewerServer> {
  return await startViewer(await openRuns(dirs, { successThreshold }), {
    port,
    ...(model !== undefined && { model }),
  });
}
