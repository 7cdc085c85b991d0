import { serveWorker } from "../../src/queue/local/serve-worker.ts";
import { openSharedFolder } from "../../src/queue/place/shared-folder.ts";
import { QueueWorker } from "../../src/queue/worker/queue-worker.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { killedSetup } from "./invented-setup.ts";

// A worker of `invented-run.ts`.

serveWorker(async ({ shared, name, leaseMs, columnsDir }, { connect, onNote }) => {
  const redactor = new Redactor();
  const store = await connect(redactor);
  const worker = await QueueWorker.start({
    store,
    setup: killedSetup(process.env["KILLED_DIR"]!),
    terms: {},
    place: await openSharedFolder(shared),
    columnsOf: () => columnsDir,
    redactor,
    concurrency: 2,
    leaseMs,
    name: `${name}-${process.pid}`,
    ...(onNote && { onNote }),
  });
  return {
    worker,
    redactor,
    warnings: [],
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
});
