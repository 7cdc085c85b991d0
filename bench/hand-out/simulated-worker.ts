import type { Inputs } from "../../src/episode/inputs/input.ts";
import { playEpisode } from "../../src/episode/play-episode.ts";
import { attemptJobSchema, baseOf, recordedAtOf } from "../../src/queue/job/attempt-job.ts";
import { writeResult } from "../../src/queue/job/attempt-result.ts";
import { LineWriter } from "../../src/queue/job/job-recording.ts";
import { sendPayload } from "../../src/queue/job/payload.ts";
import type { ToWorker } from "../../src/queue/local/channel-message.ts";
import { localClients } from "../../src/queue/local/local-clients.ts";
import { StoreChannel } from "../../src/queue/local/store-channel.ts";
import { openSharedFolder } from "../../src/queue/place/shared-folder.ts";
import { queueName } from "../../src/queue/store/keys.ts";
import { QueueStore } from "../../src/queue/store/queue-store.ts";
import { packEpisode } from "../../src/run/packed/pack-episode.ts";
import { prepareLong } from "./long-play.ts";

// Runs as a process: node simulated-worker.js SHARED RUN
// Plays one attempt, and answers each job with a copy of it under the job's names.
const [shared = "", run = ""] = process.argv.slice(2);
const { plan, setup } = await prepareLong(1);
const [planned] = [...plan];
const parts: Inputs[] = [];
const { signal } = new AbortController();
const onInputs = (part: Inputs): void => void parts.push(part);
const played = await playEpisode(planned!, setup, { signal, onInputs });

const channel = new StoreChannel((message) => void process.send?.(message));
process.on("message", (message: ToWorker) => channel.receive(message));
process.once("disconnect", () => process.exit());
const store = await QueueStore.over(localClients(() => channel.connect()));
const place = await openSharedFolder(shared);
const bull = new store.bullmq.Worker(queueName(run), null, {
  ...store.bullOptions,
  autorun: false,
  lockDuration: 600_000,
  stalledInterval: 600_000,
});
process.send?.({ type: "ready", worker: "bench" });

for (;;) {
  const taken = await bull.getNextJob("bench", { block: false });
  if (taken === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  else await answer(taken);
}

async function answer(taken: NonNullable<Awaited<ReturnType<typeof bull.getNextJob>>>) {
  const job = attemptJobSchema.parse(taken.data);
  const { rolloutId, groupId, groupIndex, taskId, taskIndex, sampleIndex, seed } = job;
  const names = { rolloutId, groupId, taskId, taskIndex, sampleIndex, seed };
  const episode = { ...played, ...names, ...(groupIndex !== undefined && { groupIndex }) };
  const writer = new LineWriter(job, { start: recordedAtOf(job) });
  for (const part of parts) writer.add(part);
  const pack = await packEpisode(episode, { recording: writer.pack(), troubles: [] });
  const about = { base: baseOf(job), recordedAt: recordedAtOf(job), deliveries: 1 };
  const bytes = writeResult({ ...about, from: "first", recordedTurns: 0 }, pack);
  const name = `results/${run}/${taken.id}`;
  const result = await sendPayload(bytes, { place, name, what: rolloutId });
  const { handOut } = job;
  const value = { answer: 1, type: "played", handOut, worker: "bench", result } as const;
  await taken.moveToCompleted(value, "bench", false);
}
