import { describe, expect, test } from "vitest";
import { simulate } from "./simulate.ts";

/**
 * The seeds to try: one by its number, or a number of them from a first one. The first failure ends
 * the test, unless all are requested.
 */
const { SIMULATION_SEED, SIMULATION_SEEDS = "70", SIMULATION_FIRST = "0" } = process.env;
const isForAll = process.env["SIMULATION_ALL"] === "1";

/** The meaning of a seed depends on it. */
const { SIMULATION_QUEUE } = process.env;
const queueSetting = SIMULATION_QUEUE === undefined ? "" : `SIMULATION_QUEUE=${SIMULATION_QUEUE} `;

const first = SIMULATION_SEED === undefined ? Number(SIMULATION_FIRST) : Number(SIMULATION_SEED);
const count = SIMULATION_SEED === undefined ? Number(SIMULATION_SEEDS) : 1;

describe("complete runs in simulated time", () => {
  test(`lose and double nothing, never hang, and score only played episodes (${count} seeds)`, async () => {
    const sums = { processes: 0, turns: 0, branches: 0 };
    const failed: string[] = [];
    for (let seed = first; seed < first + count; seed++) {
      const { branches, lives, scenario, turns, wrong } = await simulate(seed);
      sums.processes += lives;
      sums.turns += turns;
      sums.branches += branches;
      const again = `play it again with: ${queueSetting}SIMULATION_SEED=${seed} npx vitest run test/simulation`;
      if (wrong.length > 0) {
        const found = [`seed ${seed}; ${again}`, JSON.stringify(scenario), ...wrong];
        failed.push(...found);
        if (isForAll) console.log(found.join("\n"));
      }
      if (!isForAll) expect(failed).toEqual([]);
    }
    const { branches, processes, turns } = sums;
    console.log(
      `${count} simulated runs: ${processes} processes, ${turns} policy calls, ${branches} rows of branches`,
    );
    expect(failed).toEqual([]);
  }, 3_600_000);
});
