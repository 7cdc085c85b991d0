import { expect, test } from "vitest";
import { lampTask } from "../../episode/lamp-episode.fixture.ts";
import { unplayedEpisode } from "../../episode/unplayed-episode.ts";
import { GroupLedger } from "./group-ledger.ts";
import type { AttemptJob } from "./open-group.ts";
import { lamps } from "../lamp-run.fixture.ts";

/** More than a call can have arguments. */
const attemptCount = 200_000;

async function startGroup({ isBranching }: { readonly isBranching: boolean }) {
  const ledger = new GroupLedger({
    source: { length: 1, repeatable: true, at: () => ({ task: lampTask }) },
    size: attemptCount,
    started: attemptCount,
    seed: 0,
    finished: [],
    isBranching,
  });
  const started = await ledger.startNext({ signal: new AbortController().signal });
  ledger.release(started!);
  return ledger;
}

function takeAll(ledger: GroupLedger): readonly AttemptJob[] {
  const jobs: AttemptJob[] = [];
  for (let job = ledger.queue.take(); job !== undefined; job = ledger.queue.take()) jobs.push(job);
  return jobs;
}

test("gives out a group of very many attempts in their order", async () => {
  const ledger = await startGroup({ isBranching: false });
  const places = takeAll(ledger).map(({ assignment }) => assignment.sampleIndex);
  expect(places.length).toBe(attemptCount);
  expect(places.every((place, index) => place === index)).toBe(true);
});

test("gives out very many attempts that branch after the first one of their group", async () => {
  const ledger = await startGroup({ isBranching: true });
  const [first, ...none] = takeAll(ledger);
  expect([first!.assignment.sampleIndex, none]).toEqual([0, []]);
  const { assignment, group } = first!;
  ledger.add(group, unplayedEpisode(assignment, { environment: lamps(1), now: () => 0 }));
  const places = takeAll(ledger).map(({ assignment: { sampleIndex } }) => sampleIndex);
  expect(places.length).toBe(attemptCount - 1);
  expect(places.every((place, index) => place === index + 1)).toBe(true);
});

test("is finished with a complete group, even if attempts at it were not taken", async () => {
  const source = { length: 1, repeatable: true, at: () => ({ task: lampTask }) };
  const ledger = new GroupLedger({ source, size: 1, started: 3, seed: 0, finished: [] });
  ledger.release((await ledger.startNext({ signal: new AbortController().signal }))!);
  expect(ledger.isAllFinished).toBe(false);
  const { assignment, group } = ledger.queue.take()!;
  const episode = unplayedEpisode(assignment, { environment: lamps(1), now: () => 0 });
  ledger.add(group, { ...episode, outcome: "completed", stopReason: "finished", reward: 1 });
  // The ledger is not asked for further jobs.
  expect(ledger.isAllFinished).toBe(true);
});
