import { expect } from "vitest";
import { verifySample } from "../../src/trajectory/verify-sample.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import type { StorefrontSession } from "./storefront-session.fixture.ts";

/**
 * Ends a session that is a single conversation, and checks its result: one row that passes the
 * verifier and contains every turn, each sampled after exactly the row's ids, without a second
 * start.
 */
export async function finishOneRow({
  gateway,
  shop,
  engine,
  sessionId,
}: StorefrontSession): Promise<Sample> {
  const session = gateway.gateway.store.byId(sessionId)!;
  const { notes, roots, turnCount } = gateway.gateway.counts;
  expect(roots).toEqual({ first: 1 });
  expect(Object.keys(notes).filter((note) => note !== "text-differs")).toEqual([]);
  expect(turnCount).toBe(engine.prompts.length);
  await gateway.gateway.reward(session, { reward: await shop.score() });
  const samples = gateway.gateway.samples(session);
  const episode = await gateway.gateway.finish(session);
  expect(episode).toMatchObject({ outcome: "completed", stopReason: "finished", reward: 1 });
  expect(samples).toHaveLength(1);
  const sample = samples[0]!;
  expect(verifySample(JSON.parse(JSON.stringify(sample)))).toEqual([]);
  expect(sample.turns.map(({ start }) => sample.tokenIds.slice(0, start))).toEqual(engine.prompts);
  return sample;
}
