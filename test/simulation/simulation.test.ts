import { describe, expect, test } from "vitest";
import { simulate } from "./simulate.ts";

/** Seeds that are tried: one by its number, or so many from a first one. */
const { SIMULATION_SEED, SIMULATION_SEEDS = "2000", SIMULATION_FIRST = "0" } = process.env;

const first = SIMULATION_SEED === undefined ? Number(SIMULATION_FIRST) : Number(SIMULATION_SEED);
const count = SIMULATION_SEED === undefined ? Number(SIMULATION_SEEDS) : 1;

describe("whole runs in simulated time", () => {
  test(`lose nothing, double nothing, hang nowhere and score nothing that was not played (${count} seeds)`, async () => {
    let turns = 0;
    let lives = 0;
    for (let seed = first; seed < first + count; seed++) {
      const simulated = await simulate(seed);
      turns += simulated.turns;
      lives += simulated.lives;
      const again = `play it again with: SIMULATION_SEED=${seed} npx vitest run test/simulation`;
      expect(simulated.wrong, `seed ${seed}; ${again}`).toEqual([]);
    }
    console.log(`${count} simulated runs: ${lives} processes, ${turns} policy calls`);
  }, 3_600_000);
});
