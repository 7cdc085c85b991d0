import { parentPort, workerData } from "node:worker_threads";
import { assertInvariant } from "../../../errors.ts";
import type { ThreadSetup } from "./serve-thread.ts";
import { serveThread } from "./serve-thread.ts";

assertInvariant(parentPort !== null, "this module runs as a worker thread");
serveThread(parentPort, workerData as ThreadSetup);
