import { once } from "node:events";
import { Redactor } from "../../src/secrets/redactor.ts";
import { QueueStore } from "../../src/queue/store/queue-store.ts";
import { QueueWorker } from "../../src/queue/worker/queue-worker.ts";
import { benchTerms, prepareBurning } from "./queue-play.ts";

// Runs as a process: node queue-worker.js URL BURN_MS
const [url = "", burnMs = "0"] = process.argv.slice(2);
const { setup } = await prepareBurning(Number(burnMs));
await using store = await QueueStore.connect({ url });
await using _worker = await QueueWorker.start({
  store,
  setup,
  terms: benchTerms,
  redactor: new Redactor(),
  concurrency: 8,
});
process.send?.("ready");
await once(process, "message");
process.disconnect();
