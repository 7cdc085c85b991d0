import { describe, expect, test } from "vitest";
import type { SharedCounts, TurnRecord } from "../episode/episode.ts";
import { RunTally, type RunProgress } from "../run/run-progress.ts";
import { startMetricsServer } from "./metrics-server.ts";

const empty = new RunTally({ now: () => 0 }).progress();
const progress: RunProgress = {
  ...empty,
  planned: 9,
  running: 3,
  scored: 2,
  rewardMean: 0.25,
  turnCount: 12,
  outcomes: { completed: 2, truncated: 1, failed: 4 },
  failures: { "engine/unreachable": 3, "user/timeout": 1 },
  spentMs: { engine: 12_500, user: 250, environment: 4_000 },
  staleness: { mean: 0.5, most: 2 },
};

/** The lines of a page that are of a run. */
async function linesOf(url: string): Promise<readonly string[]> {
  const page = await fetch(url);
  expect(page.headers.get("content-type")).toContain("text/plain");
  return (await page.text()).split("\n").filter((line) => !line.startsWith("#") && line !== "");
}

describe("startMetricsServer()", () => {
  test("serves the state of a run and of its process", async () => {
    const admission = () => ({ admitted: 3, waiting: 5, limit: 4 });
    const source = { progress: () => progress, admission };
    await using server = await startMetricsServer(source, { port: 0 });
    const lines = await linesOf(server.url);
    expect(lines).toEqual(
      expect.arrayContaining([
        'turnwright_episodes_total{outcome="failed"} 4',
        "turnwright_turns_total 12",
        "turnwright_episodes_planned 9",
        "turnwright_reward_mean 0.25",
        'turnwright_failures_total{party="engine",code="engine/unreachable"} 3',
        'turnwright_failures_total{party="user",code="user/timeout"} 1',
        'turnwright_wait_seconds_total{on="engine"} 12.5',
        'turnwright_wait_seconds_total{on="tool"} 4',
        'turnwright_staleness_versions{of="most"} 2',
        'turnwright_admission{state="waiting"} 5',
      ]),
    );
    for (const name of ["nodejs_eventloop_lag_p99_seconds", "process_resident_memory_bytes"]) {
      expect(lines.filter((line) => line.startsWith(`${name} `))).toHaveLength(1);
    }
    // Asked again, sums are not added up.
    expect(await linesOf(server.url)).toContain("turnwright_turns_total 12");
    expect((await fetch(server.url.replace("/metrics", "/"))).status).toBe(404);
  });

  test("spreads what single turns and episodes took and earned", async () => {
    await using server = await startMetricsServer({ progress: () => progress }, { port: 0 });
    const turn = (engineMs: number, environmentMs: number) =>
      ({ engineMs, environmentMs, userMs: 0 }) as unknown as TurnRecord;
    server.observe({ turns: [turn(80, 3), turn(700, 0)], reward: 0.5, durationMs: 900 });
    // The wait for a fork's shared prefix counts once.
    const shared = { turnCount: 1 } as SharedCounts;
    server.observe({ turns: [turn(80, 3)], shared, durationMs: 20_000 });
    const lines = await linesOf(server.url);
    expect(lines).toEqual(
      expect.arrayContaining([
        'turnwright_turn_wait_seconds_bucket{le="0.1",on="engine"} 1',
        'turnwright_turn_wait_seconds_bucket{le="1",on="engine"} 2',
        'turnwright_turn_wait_seconds_count{on="tool"} 1',
        'turnwright_reward_bucket{le="0.25"} 0',
        'turnwright_reward_bucket{le="0.5"} 1',
        "turnwright_episode_seconds_count 2",
        "turnwright_episode_seconds_sum 20.9",
      ]),
    );
  });

  test("omits unknown values instead of reporting 0", async () => {
    await using server = await startMetricsServer({ progress: () => empty }, { port: 0 });
    const lines = await linesOf(server.url);
    const about = lines.filter((line) => /reward_mean|planned|staleness|admission/.test(line));
    expect(about).toEqual([]);
  });

  test("says that a port is taken, and gives its own back", async () => {
    const source = { progress: () => undefined };
    const server = await startMetricsServer(source, { port: 0 });
    const port = Number(new URL(server.url).port);
    await expect(startMetricsServer(source, { port })).rejects.toThrow(
      `Cannot serve metrics on port ${port} (--metrics-port): `,
    );
    await server[Symbol.asyncDispose]();
    await using _again = await startMetricsServer(source, { port });
  });
});
