import { expect, test } from "vitest";
import { lampTask } from "../../episode/lamp-episode.fixture.ts";
import { unplayedEpisode } from "../../episode/unplayed-episode.ts";
import { GroupLedger, type AttemptJob } from "./group-ledger.ts";
import { lamps } from "../lamp-run.fixture.ts";

/** More than a call can have arguments. */
const attemptCount = 200_000;

async function beginGroup({ isBranching }: { readonly isBranching: boolean }) {
  const book = new GroupLedger({
    source: { length: 1, repeatable: true, at: () => ({ task: lampTask }) },
    size: attemptCount,
    begun: attemptCount,
    seed: 0,
    finished: [],
    isBranching,
  });
  const begun = await book.begin({ signal: new AbortController().signal });
  book.release(begun!);
  return book;
}

function takeAll(book: GroupLedger): readonly AttemptJob[] {
  const jobs: AttemptJob[] = [];
  for (let job = book.takeJob(); job !== undefined; job = book.takeJob()) jobs.push(job);
  return jobs;
}

test("gives out a group of very many attempts in their order", async () => {
  const book = await beginGroup({ isBranching: false });
  const places = takeAll(book).map(({ assignment }) => assignment.sampleIndex);
  expect(places.length).toBe(attemptCount);
  expect(places.every((place, index) => place === index)).toBe(true);
});

test("gives out very many attempts that branch behind the first one of their group", async () => {
  const book = await beginGroup({ isBranching: true });
  const [first, ...none] = takeAll(book);
  expect([first!.assignment.sampleIndex, none]).toEqual([0, []]);
  const { assignment, group } = first!;
  book.add(group, unplayedEpisode(assignment, { environment: lamps(1), now: () => 0 }));
  const places = takeAll(book).map(({ assignment: { sampleIndex } }) => sampleIndex);
  expect(places.length).toBe(attemptCount - 1);
  expect(places.every((place, index) => place === index + 1)).toBe(true);
});

test("is done with a group that is whole, also where attempts at it were not taken", async () => {
  const source = { length: 1, repeatable: true, at: () => ({ task: lampTask }) };
  const book = new GroupLedger({ source, size: 1, begun: 3, seed: 0, finished: [] });
  book.release((await book.begin({ signal: new AbortController().signal }))!);
  expect(book.isAllFinished).toBe(false);
  const { assignment, group } = book.takeJob()!;
  const episode = unplayedEpisode(assignment, { environment: lamps(1), now: () => 0 });
  book.add(group, { ...episode, outcome: "completed", stopReason: "finished", reward: 1 });
  // Nobody asks for further ones where nothing is begun any more.
  expect(book.isAllFinished).toBe(true);
});
