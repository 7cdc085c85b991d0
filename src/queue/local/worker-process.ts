import { delayOptimization } from "../../composition/delay-optimization.ts";
import { readRunConfig } from "../../composition/config/run-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { openWorker } from "../worker/open-worker.ts";
import { serveWorker } from "./serve-worker.ts";

// The process of one worker of `--workers`. `WorkerProcesses` starts it.

delayOptimization();

serveWorker(async ({ settings, shared, name, leaseMs }, around) => {
  const run = readRunConfig(withoutUndefined(settings));
  return await openWorker({ run, shared, name, leaseMs }, around);
});
